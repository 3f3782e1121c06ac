package console

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/web/page"
)

func decode(text jsontext.Value, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read version: %w", err)
	}
	return nil
}

// members is a JSON object.
type members map[string]jsontext.Value

// documentMembers returns the members of a document in display order.
func documentMembers() []string { return []string{"policy_id", "name", "default", "rules", "tests"} }

// ruleMembers returns the members of a rule in display order, each with the default value that the service writes out
// if a rule omits it.
func ruleMembers() [][2]string {
	return [][2]string{{"rule_id"}, {"tool"}, {"agents", "[]"}, {"on_behalf_of"}, {"when", "null"}, {"requires"}, {"decision"},
		{"reason", `""`}, {"obligations", "[]"}, {"limit", "null"}, {"priority", "0"}, {"mode", `"enforce"`},
		{"on_error"}}
}

// testMembers returns the same for a test, and inputMembers for its input.
func testMembers() [][2]string {
	return [][2]string{{"name"}, {"input"}, {"now"}, {"limits", "{}"}, {"expect"}}
}

func inputMembers() [][2]string {
	return [][2]string{{"tool_name"}, {"agent_id", `"test-agent"`}, {"actor_type", `"agent"`},
		{"action_kind", `"tool_call"`}, {"on_behalf_of"}, {"on_behalf_of_verified", "false"}, {"payload", "{}"}}
}

// editable returns a version as a text for editing: without members that have their default value, and in display
// order.
func editable(shown jsontext.Value) (string, error) {
	var v struct {
		Rules []members `json:"rules"`
		Tests []members `json:"tests"`
	}
	var all members
	if err := errors.Join(decode(shown, &v), decode(shown, &all)); err != nil {
		return "", err
	}
	rules, tests := make([]jsontext.Value, len(v.Rules)), make([]jsontext.Value, len(v.Tests))
	for i, r := range v.Rules {
		r.dropDerived()
		rules[i] = r.inOrder(ruleMembers())
	}
	for i, t := range v.Tests {
		var input members
		if err := decode(t["input"], &input); err != nil {
			return "", err
		}
		t["input"] = input.inOrder(inputMembers())
		tests[i] = t.inOrder(testMembers())
	}
	all["rules"], all["tests"] = joinValues(rules), joinValues(tests)
	var order [][2]string
	kept := members{}
	for _, name := range documentMembers() {
		order, kept[name] = append(order, [2]string{name}), all[name]
	}
	return indent(kept.inOrder(order)), nil
}

// dropDerived removes the members that follow from the other members of a rule.
func (m members) dropDerived() {
	onError := `"match"`
	if string(m["decision"]) == `"allow"` {
		onError = `"skip"`
	}
	if string(m["on_error"]) == onError {
		delete(m, "on_error")
	}
	if when := m["when"]; len(when) == 0 || string(when) == "null" {
		if string(m["requires"]) == "[]" {
			delete(m, "requires")
		}
	}
}

// inOrder writes the members of the list first, without members that have their default value, and then all others.
func (m members) inOrder(order [][2]string) jsontext.Value {
	out := []byte{'{'}
	write := func(name string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, name) // the name was parsed from JSON
		out = append(append(out, ':'), m[name]...)
	}
	for _, known := range order {
		if value, there := m[known[0]]; there && string(value) != known[1] {
			write(known[0])
		}
		delete(m, known[0])
	}
	var others []string
	for name := range m {
		others = append(others, name)
	}
	slices.Sort(others)
	for _, name := range others {
		write(name)
	}
	return append(out, '}')
}

func joinValues(values []jsontext.Value) jsontext.Value {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

// indent formats a value for reading, with invisible characters escaped.
func indent(v jsontext.Value) string { return string(textcheck.EscapeJSON(page.Indent(v))) }

// maxNesting is how deep values may be nested in a text: a payload (64 deep) in the input of a policy's test.
const maxNesting = jcs.MaxDepth + 4

// parseObject parses a JSON object. An error names the line.
func parseObject(name, text string) (jsontext.Value, error) {
	value, wrong := readValue(text)
	switch {
	case wrong != nil:
		return nil, fault.New(fault.Invalid, fmt.Sprintf("%s, line %d: %s", name, wrong.line, wrong.cause))
	case value.Kind() != '{':
		return nil, fault.New(fault.Invalid, name+" must be a JSON object")
	}
	return value, nil
}

// misread contains where a text is not valid JSON, and why.
type misread struct {
	line  int
	cause string
}

// readValue parses a text that contains one value.
func readValue(text string) (jsontext.Value, *misread) {
	if at := tooDeep(text); at >= 0 {
		return nil, &misread{lineAt(text, at), fmt.Sprintf("values stand more than %d deep within others", maxNesting)}
	}
	d := jsontext.NewDecoder(strings.NewReader(text))
	value, err := d.ReadValue()
	if err == nil {
		if rest := strings.TrimLeft(text[d.InputOffset():], " \t\r\n"); rest != "" {
			return nil, &misread{lineAt(text, int64(len(text)-len(rest))), "there is more text after the end"}
		}
		return value.Clone(), nil
	}
	var wrong *jsontext.SyntacticError
	if !errors.As(err, &wrong) || wrong.ByteOffset >= int64(len(text)) || wrong.Err == nil {
		return nil, &misread{lineAt(text, int64(len(text))), "the text ends too early"}
	}
	return nil, &misread{lineAt(text, wrong.ByteOffset), strings.TrimPrefix(wrong.Err.Error(), "jsontext: ")}
}

// tooDeep returns the offset after the first value nested too deeply, or -1 if the document ends or is malformed first.
func tooDeep(text string) int64 {
	d := jsontext.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.ReadToken(); err != nil {
			return -1
		}
		if d.StackDepth() > maxNesting {
			return d.InputOffset()
		}
	}
}

// lineAt returns the number of the line that contains a byte, counting from 1.
func lineAt(text string, offset int64) int {
	offset = min(max(offset, 0), int64(len(text)))
	return 1 + strings.Count(text[:offset], "\n")
}

// findPlace returns the line of the member with which a message of the interface begins, such as rules[0].when, or 0 if
// the message names no member. If the member is missing, it is the line of the value that should contain it. It reads
// the text once.
func findPlace(text, message string) (line int) {
	d := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true))
	for _, step := range placeOf(message) {
		token, err := d.ReadToken()
		if err != nil {
			return line
		}
		if !skipTo(d, token.Kind(), step) {
			return line
		}
		at := int(d.InputOffset())
		if token.Kind() == '[' { // before the value
			at += len(text[at:]) - len(strings.TrimLeft(text[at:], " \t\r\n,"))
		}
		line = lineAt(text, int64(at))
	}
	return line
}

// skipTo advances to the value of a step in an object or a list after its opening token. It reports whether there is
// one.
func skipTo(d *jsontext.Decoder, kind jsontext.Kind, step string) bool {
	switch kind {
	case '{':
		for d.PeekKind() == '"' {
			name, err := d.ReadToken()
			if err != nil || name.String() == step {
				return err == nil
			}
			if d.SkipValue() != nil {
				return false
			}
		}
	case '[':
		n, err := strconv.Atoi(step)
		for ; n > 0 && err == nil && d.PeekKind() != ']'; n-- {
			err = d.SkipValue()
		}
		return n == 0 && err == nil && d.PeekKind() != ']'
	}
	return false
}

// placeOf returns the path of the member at the start of a message: rules[0].when, or Member "rules/0/when".
func placeOf(message string) []string {
	if rest, found := strings.CutPrefix(message, `Member "`); found {
		quoted, _, _ := strings.Cut(rest, `"`)
		return strings.Split(quoted, "/")
	}
	end := strings.IndexAny(message, " :")
	if end < 0 {
		return nil
	}
	var path []string
	for step := range strings.SplitSeq(message[:end], ".") {
		name, indices, _ := strings.Cut(step, "[")
		path = append(path, name)
		for index := range strings.SplitSeq(strings.TrimSuffix(indices, "]"), "][") {
			if _, err := strconv.Atoi(index); err == nil {
				path = append(path, index)
			}
		}
	}
	return path
}

// draftOf returns the call that makes a text the latest version of its policy, with null for the members that the text
// omits, because they would otherwise remain unchanged.
func draftOf(document jsontext.Value) (members, error) {
	var m members
	if err := json.Unmarshal(document, &m); err != nil {
		return nil, fault.Wrap(fault.Invalid, "The policy must be a JSON object", err)
	}
	for _, name := range []string{"name", "default", "rules", "tests"} {
		if _, there := m[name]; !there {
			m[name] = jsontext.Value("null")
		}
	}
	return m, nil
}

// withTest returns a text with one more test at its end.
func withTest(document jsontext.Value, added any) (string, error) {
	var m members
	var tests struct {
		Tests []jsontext.Value `json:"tests"`
	}
	text, err := json.Marshal(added)
	if err := errors.Join(err, json.Unmarshal(document, &m), json.Unmarshal(document, &tests)); err != nil {
		return "", fault.Wrap(fault.Invalid, "The tests in the text can't be read: correct the text first", err)
	}
	var order [][2]string
	for _, name := range documentMembers() {
		order = append(order, [2]string{name})
	}
	m["tests"] = joinValues(append(tests.Tests, bytes.TrimSpace(text)))
	return indent(m.inOrder(order)), nil
}
