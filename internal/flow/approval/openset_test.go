package approval_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// The stored bytes of the set of open approvals: its count and pace, the share of an ingest key, and the list.
func TestStoredOpenSet(t *testing.T) {
	w := newWorld(t)
	first := w.ask(red, w.question(red))
	q := w.question(red)
	q.Payload = []byte(`{"amount":8}`)
	second := w.ask(red, q)
	const digest = "1b330f8f42621b665ca953b722f581262448d43f7c51ca16d910d91517256a19"
	listed := func(status string) string {
		return `{"status":"` + status + `","agent_id":"BOT","tool_name":"acme.refund","policy_digest":"` + digest + `","created_at":"2026-11-20T12:00:00.000Z","expires_at":"2026-11-20T12:10:00.000Z"}`
	}
	w.wantStored("after two questions", map[string]string{
		"approval_tally ":                      `{"open":2,"asked":{"paid":"2026-11-20T12:00:00.720Z"}}`,
		"approval_tally ik_operator":           `{"open":2}`,
		"approval_tally agent/BOT/ik_operator": `{"open":2}`,
		"approval_newest first":                listed("pending"),
		"approval_newest second":               listed("pending"),
		"approval_newest complete":             `{}`,
	}, first, second)
	w.approve(red, first, bob)
	if _, err := w.vote(red, second, bob, approval.Deny); err != nil {
		t.Fatal(err)
	}
	w.wantStored("after two votes", map[string]string{
		"approval_tally ":                      `{"open":1,"asked":{"paid":"2026-11-20T12:00:00.720Z"}}`,
		"approval_tally ik_operator":           `{"open":1}`,
		"approval_tally agent/BOT/ik_operator": `{"open":1}`,
		"approval_newest first":                listed("approved"),
		"approval_newest second":               listed("denied"),
		"approval_newest complete":             `{}`,
	}, first, second)
}

// The record on which a change of settings depends if it requires that no approval is open.
func TestStoredTallyOfNone(t *testing.T) {
	w := newWorld(t)
	changes, err := w.approvals.NoneOpen(t.Context(), red)
	if err != nil || len(changes) != 1 {
		t.Fatalf("got %v, %v", changes, err)
	}
	if got, want := string(changes[0].Value), `{"open":0,"asked":{"paid":"1970-01-01T00:00:00.000Z"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func (w *world) wantStored(when string, want map[string]string, first, second approval.Approval) {
	w.t.Helper()
	got := make(map[string]string)
	for _, kind := range []storage.Kind{"approval_tally", "approval_newest"} {
		found, err := w.Engine.Scan(w.t.Context(), red, kind, "", "", 100)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range found {
			key := strings.ReplaceAll(r.Key, string(w.keys[red].Agent), "BOT")
			for name, a := range map[string]approval.Approval{"first": first, "second": second} {
				if key == records.ReverseKey(string(a.ID)) {
					key = name
				}
			}
			got[string(kind)+" "+key] = strings.ReplaceAll(string(r.Value), string(w.keys[red].Agent), "BOT")
		}
	}
	for name, value := range want {
		if got[name] != value {
			w.t.Errorf("%s: %s: got %s, want %s", when, name, got[name], value)
		}
		delete(got, name)
	}
	for name, value := range got {
		w.t.Errorf("%s: %s was written too: %s", when, name, value)
	}
}
