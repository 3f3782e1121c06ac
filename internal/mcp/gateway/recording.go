package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/event"
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
	// Receipt asks the server for a receipt of a call without an approval too: it gets the names of organization, agent and event, and the
	// payload that the event records.
	Receipt bool
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
	for _, name := range event.GuardMembers() {
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

// inexactMember holds a result that has no canonical form, as text.
const inexactMember = "inexact_result"

const (
	// maxOutput is the size in bytes of the largest result that is recorded itself, in canonical form. An event has
	// at most 256 KiB.
	maxOutput = 200 << 10
	// outputDepth is how deep a result lies in its event: event, payload, output.
	outputDepth = 3
)

// recordedResult is what the ledger gets of a result: its digest, and the result itself where the rule says so. The
// round trips before it are recorded in the same way. A nil result is that of an error.
func (c *call) recordedResult(result jsontext.Value) any {
	members := map[string]any{}
	if len(c.trips) > 0 {
		members["round_trips"] = c.recordedTrips()
	}
	if note := receiptIn(result); note != "" {
		members["receipt"] = note
	}
	output := canonicalText(result)
	switch {
	case !c.rule.Output || output == nil:
	case len(output) > maxOutput:
		members["output_left_out"] = len(output)
	default:
		members["output"] = output
	}
	if len(members) == 0 && output == nil {
		return nil
	}
	return guard.Disclosed{Output: output, Members: members}
}

// recordedTrips is what the ledger gets of the round trips: questions and answers where the rule records the result
// itself, and otherwise their digests.
func (c *call) recordedTrips() []roundTrip {
	all := make([]roundTrip, len(c.trips))
	size := 0
	for i, t := range c.trips {
		all[i] = roundTrip{canonicalText(t.Requests), canonicalText(t.Responses), t.State}
		size += len(all[i].Requests) + len(all[i].Responses)
	}
	if c.rule.Output && size <= maxTrips {
		return all
	}
	for i, t := range all {
		all[i].Requests, all[i].Responses = quotedDigest(t.Requests), quotedDigest(t.Responses)
	}
	return all
}

// maxTrips is the size in bytes of the questions and answers that are recorded themselves.
const maxTrips = 32 << 10

// canonicalText returns the canonical form of a value, or an object with its text if it has none.
func canonicalText(value jsontext.Value) jsontext.Value {
	if value == nil {
		return nil
	}
	text, err := jcs.Canonicalize(value, jcs.MaxDepth-outputDepth)
	if err != nil { // numbers that are not exact, for example
		text = jcs.AppendString([]byte(`{"`+inexactMember+`":`), string(value))
		text = append(text, '}')
	}
	return text
}

func quotedDigest(text jsontext.Value) jsontext.Value {
	if text == nil {
		return nil
	}
	return jsontext.Value(`"sha256:` + digestOf(string(text)) + `"`)
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
