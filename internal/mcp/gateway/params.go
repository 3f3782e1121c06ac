package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// errFolded is returned for an object with two names that differ by case folding only. A server that ignores case would
// take another value than the one that was judged: encoding/json of Go does so by default.
var errFolded = errors.New("params: two names differ in the case of letters only")

// callMembers are the members that the protocol defines for the params of a tool call.
var callMembers = [...]string{"name", "arguments", "_meta", "task", "inputResponses", "requestState"}

// readParams reads the members of params. A name that differs from a defined one by case folding only (Name, ARGUMENTS)
// is refused, because some servers would take it for the member itself.
func readParams(raw jsontext.Value) (map[string]jsontext.Value, error) {
	var params map[string]jsontext.Value
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, errors.New("params: must be an object")
	}
	for name := range params {
		for _, known := range callMembers {
			if name != known && strings.EqualFold(name, known) {
				return nil, fmt.Errorf("params: %s is spelled in other letters", known)
			}
		}
	}
	return params, nil
}

// checkFolded returns errFolded if an object of value, at any depth, has two names that differ by case folding only.
func checkFolded(value jsontext.Value) error {
	in := jsontext.NewDecoder(bytes.NewReader(value))
	var open []map[string]bool // the folded names of each open object; nil for an array
	for {
		if at := len(open) - 1; at >= 0 && open[at] != nil && in.PeekKind() == '"' {
			if _, members := in.StackIndex(in.StackDepth()); members%2 == 0 {
				name, err := in.ReadToken()
				if err != nil {
					return err
				}
				folded := foldCase(name.String())
				if open[at][folded] {
					return errFolded
				}
				open[at][folded] = true
				continue
			}
		}
		token, err := in.ReadToken()
		if err != nil {
			return err
		}
		switch token.Kind() {
		case '{':
			open = append(open, map[string]bool{})
		case '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		}
		if len(open) == 0 {
			return nil
		}
	}
}

// foldCase returns the same text for texts that are equal under Unicode case folding, as strings.EqualFold compares
// them: each character becomes the least one that it folds to.
func foldCase(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, s)
}

// replaceMember returns params with another value of one member.
func replaceMember(params map[string]jsontext.Value, name, value string) (jsontext.Value, error) {
	text, err := jsontext.AppendQuote(nil, value)
	if err != nil {
		return nil, errors.New("params: a name is not UTF-8")
	}
	changed := maps.Clone(params)
	changed[name] = text
	return message.EncodeMembers(changed)
}
