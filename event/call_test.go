package event_test

import (
	"testing"

	"github.com/agentledger/agentledger/event"
)

func TestCall(t *testing.T) {
	for _, c := range []struct {
		name, canonical, payload string
		want                     event.Call
		result                   bool
	}{
		{"plain", `{}`, `{"a":1}`, event.Call{}, false},
		{"intent", `{}`, `{"call_id":"c","phase":"intent"}`, event.Call{Phase: "intent", ID: "c"}, false},
		{"result", `{"parent_event_id":"evt-1"}`, `{"call_id":"c","phase":"result"}`, event.Call{Phase: "result", ID: "c", Parent: "evt-1"}, true},
		{"parent in the payload", `{}`, `{"parent_event_id":"evt-1","phase":"result"}`, event.Call{Phase: "result", Parent: "evt-1"}, true},
		{"two parents", `{"parent_event_id":"own"}`, `{"parent_event_id":"other","phase":"result"}`, event.Call{Phase: "result", Parent: "own"}, true},
		{"no parent", `{}`, `{"phase":"result"}`, event.Call{Phase: "result"}, false},
		{"a parent that is not an event ID", `{"parent_event_id":".."}`, `{"phase":"result"}`, event.Call{Phase: "result"}, false},
		{"other types", `{"parent_event_id":1}`, `{"call_id":{},"phase":["result"]}`, event.Call{}, false},
		{"deeper down", `{"a":{"parent_event_id":"evt-1"}}`, `{"a":{"phase":"result"},"parent_event_id":"evt-1"}`, event.Call{Parent: "evt-1"}, false},
		{"escaped", `{}`, `{"a":"\"phase\":\"result\"","parent_event_id":"evt-1"}`, event.Call{Parent: "evt-1"}, false},
	} {
		e := event.Envelope{Tool: "t", Canonical: []byte(c.canonical), Payload: []byte(c.payload)}
		if got := e.Call(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
		if _, got := e.ClaimsResult(); got != c.result {
			t.Errorf("%s: IsResult: got %v, want %v", c.name, got, c.result)
		}
		if e.Tool = ""; c.result {
			if _, got := e.ClaimsResult(); got {
				t.Errorf("%s: without a tool, ClaimsResult returned true", c.name)
			}
		}
	}
}
