package gateway

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// Rule says how the calls of tools are recorded.
type Rule struct {
	Tools  string   // pattern of tool names
	Digest bool     // the SHA-256 of the arguments instead of the arguments
	Seen   []string // with Digest: the members that are recorded all the same, for policies and people
	Output bool     // the result, beside its SHA-256
}

func (r Rule) check() error {
	if !r.Digest && len(r.Seen) > 0 {
		return fmt.Errorf("rule for %.256q: members are chosen only where the digest is recorded", r.Tools)
	}
	return checkPattern(r.Tools)
}

func (g *Gateway) ruleFor(tool id.Tool) Rule {
	for _, r := range g.Rules {
		if textcheck.MatchTool(r.Tools, string(tool)) {
			return r
		}
	}
	return Rule{}
}

// reserved are the members of an intent's payload that the guard writes.
var reserved = [...]string{"phase", "call_id", "salt", "input_digest", jcs.TaggedMember}

// argumentsError is returned for arguments that can't be recorded. The caller can change them.
type argumentsError struct{ err error }

func (e *argumentsError) Error() string { return e.err.Error() }
func (e *argumentsError) Unwrap() error { return e.err }

// maxInput is the size in bytes of the largest arguments that are recorded whole. An event has at most 256 KiB.
const maxInput = 200 << 10

// payloadDepth is the level of an event's members that contain arguments.
const payloadDepth = 2

// checkSize refuses arguments that are too large or nested too deeply for an event.
func (r Rule) checkSize(a arguments) error {
	size := 0
	for name, value := range a.members {
		if r.Digest && !slices.Contains(r.Seen, name) {
			continue
		}
		recorded := jcs.Tag(value)
		if _, err := jcs.Canonicalize(recorded, jcs.MaxDepth-payloadDepth); err != nil {
			return fmt.Errorf("read arguments: %w", err)
		}
		size += len(name) + len(recorded)
	}
	if size > maxInput {
		return fmt.Errorf("the arguments have %d bytes, and at most %d can be recorded whole. The tool has to be recorded by digest (record, digest) for larger ones", size, maxInput)
	}
	return nil
}

var errReserved = errors.New("two arguments would be recorded under the same name")

// arguments are the arguments of a call.
type arguments struct {
	text    jsontext.Value            // canonical, with exact numbers (jcs.Exact); the server receives exactly this
	members map[string]jsontext.Value // under the names that are recorded, with exact numbers
}

// readArguments checks that arguments are a JSON object whose numbers can be recorded. Missing arguments and null are an
// empty object.
func readArguments(raw jsontext.Value) (arguments, error) {
	if len(raw) == 0 || raw.Kind() == 'n' {
		raw = jsontext.Value("{}")
	}
	text, err := jcs.Exact(raw, jcs.MaxDepth)
	if err != nil {
		return arguments{}, fmt.Errorf("read arguments: %w", err)
	}
	a := arguments{text: text}
	if err := json.Unmarshal(text, &a.members); err != nil || a.members == nil {
		return arguments{}, errors.New("read arguments: not a JSON object")
	}
	for _, name := range reserved {
		value, ok := a.members[name]
		if !ok {
			continue
		}
		if _, taken := a.members["argument_"+name]; taken {
			return arguments{}, errReserved
		}
		a.members["argument_"+name] = value
		delete(a.members, name)
	}
	return a, nil
}
