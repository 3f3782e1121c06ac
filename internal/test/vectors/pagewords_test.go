package vectors

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// probe is a value for a member, as JSON; absent is "".
type probe struct{ text string }

// put sets the member to the value or removes it.
func (p probe) put(d map[string]any, member string) {
	if p.text == "" {
		delete(d, member)
		return
	}
	d[member] = jsontext.Value(p.text)
}

// string returns the text that the probe is in JSON, if it is one.
func (p probe) string() (s string, ok bool) {
	return s, p.text != "" && p.text != "null" && json.Unmarshal([]byte(p.text), &s) == nil
}

// nested returns n nested lists.
func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

const someParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// probes are values at the limits of the page's words.
func probes() (all []probe) {
	hash, uuid := strings.Repeat("0123456789abcdef", 4), "ab000000-0000-0000-0000-00000000000f"
	texts := []string{
		"", "x", "X", ".", "..", "a.b", "a..b", ".a", "a.", "a b", "a_b", "_a", "1a", "a:b", "a#b", "a/b", "a-b", "a\n", "é", "a\u0000b", "a\u0085b", "a\u007fb",
		strings.Repeat("a", 64), strings.Repeat("a", 65), strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("a", 256), strings.Repeat("a", 257),
		strings.Repeat("😀", 256), strings.Repeat("é", 257),
		"allow", "deny", "allow_with_obligation", "Allow", "agent", "bridge", "system", "server", "digest", "canonical", "commitment", "record", "full", "ed25519",
		hash, strings.ToUpper(hash), hash[1:], hash + "0", strings.Repeat("0", 64), uuid, strings.ToUpper(uuid), strings.ReplaceAll(uuid, "-", ""), "{" + uuid + "}", uuid[:35] + "g",
		"2026-11-20T12:00:00.000Z", "2026-11-20T12:00:00Z", "2026-11-20T12:00:00.1Z", "2026-11-20T12:00:00.123456789Z", "2026-11-20T12:00:00.1234567890Z", "2026-11-20T12:00:00.Z",
		"2026-11-20T12:00:00,000Z", "2026-11-20t12:00:00.000z", "2026-11-20T12:00:00.000+00:00", "2026-02-30T12:00:00.000Z", "2026-11-20T24:00:00.000Z", "2016-12-31T23:59:60.000Z",
		"1970-01-01T00:00:00.000Z", "0000-02-29T23:59:59.999Z", "1500-02-29T00:00:00.000Z", "9999-12-31T23:59:59.999Z", "10000-01-01T00:00:00.000Z",
		"verified", someParent, "01" + someParent[2:], someParent + "-", strings.ToUpper(someParent), someParent[:3] + strings.Repeat("0", 32) + someParent[35:],
		someParent[:36] + strings.Repeat("0", 16) + "-01", someParent[:36] + strings.Repeat("0", 15) + "1-ff", someParent[1:], "g" + someParent[1:],
		strings.Repeat("A", 86) + "==", strings.Repeat("A", 85) + "B==", strings.Repeat("A", 86), strings.Repeat("A", 84), strings.Repeat("A", 88), strings.Repeat("_", 85) + "w==",
	}
	for _, s := range texts {
		quoted, err := json.Marshal(s)
		if err == nil {
			all = append(all, probe{string(quoted)})
		}
	}
	proof := `{"hashes":["` + hash + `"],"log_index":1,"root_hash":"` + hash + `","tree_size":2}`
	for _, text := range []string{
		"", "null", "true", "false", "0", "1", "2", "-1", "1.5", "9007199254740991", "9007199254740992", "1e300", "{}", `{"a":null}`, "[]", `["x"]`, "[null]", "[1]", `["` + hash + `"]`,
		`["` + strings.ToUpper(hash) + `"]`, nested(8), nested(9), proof, strings.Replace(proof, "{", `{"a":1,`, 1), strings.Replace(proof, `["`, `[null,"`, 1), strings.Replace(proof, ":1,", ":-1,", 1),
	} {
		all = append(all, probe{text})
	}
	return all
}

// valuesOf returns the meaning of a cell such as "absent, null or text". It records the words used.
func valuesOf(t *testing.T, cell string, used map[string]bool) func(probe) bool {
	t.Helper()
	if list, ok := strings.CutPrefix(cell, "one of "); ok {
		words := strings.Split(strings.Trim(list, "`"), "`, `")
		return func(p probe) bool { s, ok := p.string(); return ok && slices.Contains(words, s) }
	}
	var alternatives []func(probe) bool
	for _, word := range strings.Split(strings.ReplaceAll(cell, ", ", " or "), " or ") {
		is, ok := words()[word]
		if !ok {
			t.Fatalf("no word %q in %q", word, cell)
		}
		used[word] = true
		alternatives = append(alternatives, is)
	}
	return func(p probe) bool {
		return slices.ContainsFunc(alternatives, func(is func(probe) bool) bool { return is(p) })
	}
}

// words is the meaning of the words in the page's tables. It is written from the page and shares nothing with the code
// that it is compared with.
func words() map[string]func(probe) bool {
	used := map[string]func(probe) bool{
		"absent": func(p probe) bool { return p.text == "" }, "null": exactly("null"), "true": exactly("true"), "false": exactly("false"), "the number 1": exactly("1"),
		"the word `verified`": exactly(`"verified"`),
		"any":                 func(p probe) bool { return p.text != "" },
		"text":                func(p probe) bool { _, ok := p.string(); return ok },
		"natural":             exactly("0", "1", "2", "9007199254740991"), "positive": exactly("1", "2", "9007199254740991"),
		"object": func(p probe) bool { return strings.HasPrefix(p.text, "{") },
		"limits": func(p probe) bool { return p.text == "null" || strings.HasPrefix(p.text, "[") && p.text != nested(9) },
		"list of hashes": func(p probe) bool {
			return p.text == "[]" || regexp.MustCompile(`^\["[0-9a-f]{64}"\]$`).MatchString(p.text)
		},
		"list of texts": func(p probe) bool { return p.text == "[]" || strings.HasPrefix(p.text, `["`) },
		"proof": func(p probe) bool {
			return strings.HasPrefix(p.text, `{"hashes":["0`) && strings.Contains(p.text, ":1,")
		},
		"policy": exactly(), "second proof": exactly(), // only the valid ones
		"principal": func(p probe) bool {
			s, ok := p.string()
			n := utf8.RuneCountInString(s)
			return ok && n >= 1 && n <= 256 && !strings.ContainsFunc(s, unicode.IsControl)
		},
		"time":      isTime(`\.[0-9]{3}`),
		"some time": func(p probe) bool { return isTime(`\.[0-9]{3}`)(p) && p.text != `"1970-01-01T00:00:00.000Z"` },
		"moment":    isTime(`(\.[0-9]{1,9})?`),
	}
	for word, grammar := range map[string]string{
		"some text": `(?s).+`, "hash": `[0-9a-f]{64}`, "some hash": `[0-9a-f]*[1-9a-f][0-9a-f]*`, "UUID": `(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`, "lower UUID": `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`,
		"id": `[A-Za-z0-9._:-]{1,128}`, "agent id": `[A-Za-z0-9._-]{1,128}`, "key id": `[A-Za-z0-9._:#-]{1,256}`, "token": `[a-z][a-z0-9_]{0,63}`, "tool": `[A-Za-z0-9_:/-]+(\.[A-Za-z0-9_:/-]+)*`,
		"signature": `[A-Za-z0-9+/]{85}[AQgw]==`, "traceparent": `00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}`,
	} {
		expression := regexp.MustCompile("^(?:" + grammar + ")$")
		used[word] = func(p probe) bool {
			s, ok := p.string()
			switch {
			case word == "traceparent" && (strings.Contains(s, "-"+strings.Repeat("0", 32)) || strings.Contains(s, "-"+strings.Repeat("0", 16)+"-")):
				return false
			case word == "id" && strings.Trim(s, ".") == "" && len(s) < 3, word == "tool" && len(s) > 256, word == "some hash" && len(s) != 64:
				return false
			}
			return ok && expression.MatchString(s)
		}
	}
	return used
}

func exactly(texts ...string) func(probe) bool {
	return func(p probe) bool { return slices.Contains(texts, p.text) }
}

// isTime matches a time on an existing day, with a fraction after the seconds.
func isTime(fraction string) func(probe) bool {
	expression := regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}` + fraction + `Z$`)
	return func(p probe) bool {
		s, _ := p.string()
		if !expression.MatchString(s) {
			return false
		}
		_, err := time.Parse("2006-01-02T15:04:05", s[:19])
		return err == nil
	}
}
