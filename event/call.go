package event

import (
	"bytes"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// Values of payload.phase: an event before an act, and an event that states the result.
const (
	PhaseIntent = "intent"
	PhaseResult = "result"
)

// Call is an envelope's role in a guarded call. The sender may write any value into these
// members. A value in another form counts as absent.
type Call struct {
	Phase  string   // payload.phase, "" for none
	ID     string   // payload.call_id, "" for none
	Parent id.Event // parent_event_id of the envelope, or else of the payload; "" for none
}

// Call reads the members of a guarded call. It allocates, and takes as long as
// parsing the envelope again.
func (e *Envelope) Call() Call {
	c := CallOf(e.Payload)
	if own := textMembers(e.Canonical, "parent_event_id")[0]; own != "" {
		c.Parent = parentEventID(own)
	}
	return c
}

// CallOf is Call for a payload alone, a JSON object.
func CallOf(payload []byte) Call {
	texts := textMembers(payload, "phase", "call_id", "parent_event_id")
	return Call{Phase: texts[0], ID: texts[1], Parent: parentEventID(texts[2])}
}

func parentEventID(text string) id.Event {
	if !ValidEvent(text) {
		return ""
	}
	return id.Event(text)
}

// SaysResult reports whether the event calls itself the result of another one: it names
// a tool and a parent, and its payload.phase is "result". Whether it is one, the ledger
// has to tell. Example: an event whose parent was denied is none.
func (e *Envelope) SaysResult() (Call, bool) {
	if e.Tool == "" || !mayHavePhase(PhaseResult, e.Payload) {
		return Call{}, false
	}
	c := e.Call()
	return c, c.IsResult()
}

// IsResultOf reports whether the event calls itself the result of that one.
func (e *Envelope) IsResultOf(intent id.Event) bool {
	c, ok := e.SaysResult()
	return ok && c.Parent == intent
}

// IsResult reports whether the call's phase and parent are those of a result.
func (c Call) IsResult() bool { return c.Phase == PhaseResult && c.Parent != "" }

// MayBeIntent is a quick look: false says that payload.phase is not "intent".
func (e *Envelope) MayBeIntent() bool { return mayHavePhase(PhaseIntent, e.Payload) }

// mayHavePhase is a quick look at a canonical payload, in which a member is spelled in one way.
func mayHavePhase(phase string, payload []byte) bool {
	at := bytes.Index(payload, []byte(`"phase":"`))
	return at >= 0 && bytes.Contains(payload[at:], []byte(`"phase":"`+phase+`"`))
}

// textMembers returns the values of members of an object that are strings, "" for all
// others.
func textMembers(object []byte, names ...string) []string {
	texts := make([]string, len(names))
	canonical, members, err := jcs.ParseObject(nil, object, jcs.MaxDepth)
	if err != nil {
		return texts // no payload of an Envelope
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
