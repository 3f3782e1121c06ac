package event

import (
	"bytes"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Values of payload.phase: an event that is stored before an action, and an event that states its
// result.
const (
	PhaseIntent = "intent"
	PhaseResult = "result"
)

// GuardMembers returns the members that a guard adds to the arguments of a call in the payload of its intent. No argument has
// one of these names.
func GuardMembers() []string {
	return []string{"phase", "call_id", "salt", "input_digest", jcs.TaggedMember}
}

// Call is the role of an envelope in a guarded call. Senders may write any value into these
// members. A value of another form counts as absent.
type Call struct {
	Phase  string   // payload.phase, or ""
	ID     string   // payload.call_id, or ""
	Parent id.Event // parent_event_id of the envelope, else of the payload, else ""
}

// Call returns the members of a guarded call. It allocates and costs as much as parsing the
// envelope again.
func (e *Envelope) Call() Call {
	c := ParseCall(e.Payload)
	if own := textMembers(e.Canonical, "parent_event_id")[0]; own != "" {
		c.Parent = parentEventID(own)
	}
	return c
}

// ParseCall returns the members of a guarded call in a payload, which must be a JSON object.
func ParseCall(payload []byte) Call {
	texts := textMembers(payload, "phase", "call_id", "parent_event_id")
	return Call{Phase: texts[0], ID: texts[1], Parent: parentEventID(texts[2])}
}

func parentEventID(text string) id.Event {
	if !ValidEvent(text) {
		return ""
	}
	return id.Event(text)
}

// ClaimsResult reports whether the event claims to be the result of another event: it names a tool
// and a parent, and its payload.phase is "result". Only the ledger can decide whether the claim
// holds. For example, an event whose parent was denied is not a result.
func (e *Envelope) ClaimsResult() (Call, bool) {
	if e.Tool == "" || !mayHavePhase(PhaseResult, e.Payload) {
		return Call{}, false
	}
	c := e.Call()
	return c, c.IsResult()
}

// IsResultOf reports whether the event claims to be the result of intent.
func (e *Envelope) IsResultOf(intent id.Event) bool {
	c, ok := e.ClaimsResult()
	return ok && c.Parent == intent
}

// IsResult reports whether the call has the phase and the parent of a result.
func (c Call) IsResult() bool { return c.Phase == PhaseResult && c.Parent != "" }

// MayBeIntent is a quick check. If it returns false, payload.phase is not "intent".
func (e *Envelope) MayBeIntent() bool { return mayHavePhase(PhaseIntent, e.Payload) }

// mayHavePhase is a quick check of a canonical payload, in which each member has one spelling.
func mayHavePhase(phase string, payload []byte) bool {
	at := bytes.Index(payload, []byte(`"phase":"`))
	return at >= 0 && bytes.Contains(payload[at:], []byte(`"phase":"`+phase+`"`))
}

// textMembers returns the values of members of an object that are strings, and "" for all others.
func textMembers(object []byte, names ...string) []string {
	texts := make([]string, len(names))
	canonical, members, err := jcs.ParseObject(nil, object, jcs.MaxDepth)
	if err != nil {
		return texts // not a payload of an Envelope
	}
	for _, m := range members {
		for i, name := range names {
			if string(m.Name(canonical)) == name {
				text, _ := jcs.AppendDecoded(nil, canonical[m.Value:m.End])
				texts[i] = string(text)
			}
		}
	}
	return texts
}
