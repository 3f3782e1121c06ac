package ingest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/tenant/org"
)

const replayOnly = "X-Replay-Only: 1"

// A replay-only request is answered from the ledger. It stores nothing and requests no approval, for any sender.
func TestReplayOnly(t *testing.T) {
	w := newWorld(t)
	asks := map[*member]*member{}
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "pol-1", rules)
		twin := *m
		twin.token = w.ingestKey(m, org.WantedKey{Asks: true})
		asks[m] = &twin
	}
	for _, m := range []*member{&w.red, &w.blue} {
		for decision, change := range map[string]fields{
			"allow": intent("acme.allow"), "deny": intent("acme.deny"), "allow_with_obligation": intent("acme.ask"), "": {"tool_name": nil},
		} {
			name := "evt-" + decision
			body := w.envelope(m, name, change)
			before := w.sizes()
			for _, by := range []*member{m, asks[m]} {
				for _, headers := range [][]string{{replayOnly}, {replayOnly, wantsApproval}, {replayOnly, "Idempotency-Key: k" + name}} {
					a := w.send(by, body, headers...)
					if a.Code != http.StatusNotFound || a.fields["error"] != "Not found" || a.fields["code"] != "not_stored" {
						t.Errorf("%q, not stored, %q: got %d %s", decision, headers, a.Code, a.Body)
					}
				}
			}
			if got := w.sizes(); got != before {
				t.Errorf("%q: the question went from %v to %v events", decision, before, got)
			}
			w.expect(w.send(m, body), http.StatusCreated, "")
			before = w.sizes()
			for _, by := range []*member{m, asks[m]} {
				for _, headers := range [][]string{{replayOnly}, {replayOnly, wantsApproval}} {
					a := w.send(by, body, headers...)
					if a.Code != http.StatusOK || a.fields["status"] != "replayed" || told(a.fields) != decision || a.fields["approval_id"] != nil {
						t.Errorf("%q, stored, %q: got %d %s", decision, headers, a.Code, a.Body)
					}
				}
			}
			if got := w.sizes(); got != before {
				t.Errorf("%q: the question about a stored event went from %v to %v events", decision, before, got)
			}
		}
	}
}

// The event is checked before the ledger is read.
func TestReplayOnlyRefused(t *testing.T) {
	w := newWorld(t)
	stored, other := w.envelope(&w.red, "evt", nil), w.envelope(&w.red, "evt", fields{"action_kind": "other"})
	w.expect(w.send(&w.red, stored), http.StatusCreated, "")
	before := w.sizes()
	for name, c := range map[string]struct {
		by      *member
		body    string
		headers []string
		status  int
		message string
	}{
		"other value":          {&w.red, stored, []string{"X-Replay-Only: yes"}, 422, "X-Replay-Only must be 1"},
		"empty":                {&w.red, stored, []string{"X-Replay-Only: "}, 422, "X-Replay-Only must be 1"},
		"twice":                {&w.red, stored, []string{replayOnly, replayOnly}, 422, "X-Replay-Only must be 1"},
		"another event":        {&w.red, other, []string{replayOnly}, 422, "event_id was used with another event"},
		"another organization": {&w.blue, stored, []string{replayOnly}, 403, "Organization mismatch for API key"},
		"another signature":    {&w.red, w.envelope(&w.blue, "evt", fields{"organization_id": w.red.id}), []string{replayOnly}, 422, "Unknown signing key"},
		"no event":             {&w.red, "{}", []string{replayOnly}, 422, "Missing organization_id"},
	} {
		if a := w.send(c.by, c.body, c.headers...); a.Code != c.status || a.fields["error"] != c.message {
			t.Errorf("%s: got %d %s, want %d %s", name, a.Code, a.Body, c.status, c.message)
		}
	}
	const noBatch = "X-Replay-Only is not allowed on a batch: send the event alone"
	if b := w.batch(&w.red, ndjson(stored), replayOnly); b.Code != 422 || !strings.Contains(b.Body.String(), noBatch) {
		t.Errorf("in a batch: got %d %s", b.Code, b.Body)
	}
	if got := w.sizes(); got != before {
		t.Errorf("went from %v to %v events", before, got)
	}
}
