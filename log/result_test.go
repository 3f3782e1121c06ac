package log_test

import (
	"context"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// The record of a result follows from that of its intent, or it is found that it does
// not: by fsck, the re-verification and whoever copies the ledger.
func TestResultsFollowFromTheirIntents(t *testing.T) {
	intent := event.Policy{Evaluated: true, Declared: id.Allow, Effective: id.AllowWithObligation, PolicyID: "p", PolicyVersion: 1, PolicyDigest: id.Hash{1}, RuleID: "r", Engine: "rules", EvaluatedAt: 1}
	denied := intent
	denied.Effective = id.Deny
	good := intent.ForResult("intent", id.Allow)
	change := func(f func(*event.Policy)) event.Policy {
		p := good
		f(&p)
		return p
	}
	result := map[string]any{"phase": "result", "parent_event_id": "intent"}
	for _, c := range []struct {
		name    string
		intent  event.Policy
		payload map[string]any
		result  event.Policy
		want    string // place of the finding, "" for none
	}{
		{"it follows", intent, result, good, ""},
		{"looser", intent, result, change(func(p *event.Policy) { p.Effective = id.Allow }), "record 2"},
		{"stricter by nobody's word", intent, result, change(func(p *event.Policy) { p.Effective = id.Deny }), "record 2"},
		{"another rule", intent, result, change(func(p *event.Policy) { p.RuleID = "other" }), "record 2"},
		{"another policy", intent, result, change(func(p *event.Policy) { p.PolicyDigest[0]++ }), "record 2"},
		{"evaluated", intent, result, change(func(p *event.Policy) { p.Evaluated = true }), "record 2"},
		{"a denied intent", denied, result, good, "record 2"},
		{"no such intent", intent, map[string]any{"phase": "result", "parent_event_id": "nowhere"}, change(func(p *event.Policy) { p.Intent = "nowhere" }), "record 2"},
		{"itself", intent, map[string]any{"phase": "result", "parent_event_id": "result"}, change(func(p *event.Policy) { p.Intent = "result" }), "record 2"},
		{"the envelope names another", intent, map[string]any{"phase": "result", "parent_event_id": "other"}, good, "envelope 2"},
		{"the envelope is no result", intent, map[string]any{"parent_event_id": "intent"}, good, "envelope 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := storagetest.NewModel()
			w := newWorld(t, store)
			w.mustAppend(red, "other")
			w.mustAppend(blue, "intent")
			w.decided(red, "intent", nil, c.intent)
			w.decided(red, "result", c.payload, c.result)
			w.ledgers.Close()
			var places []string
			for _, f := range w.fsck(store) {
				if f.Tenant != red || f.Level != log.Suspect {
					t.Errorf("got %v", f)
				}
				places = append(places, f.Place)
			}
			if want := []string{c.want}; c.want != "" && !slices.Equal(places, want) || c.want == "" && places != nil {
				t.Errorf("got findings at %q, want %q", places, c.want)
			}
		})
	}
}

// decided appends an event whose record has a policy.
func (w *world) decided(tenant id.Tenant, name string, payload map[string]any, p event.Policy) {
	w.t.Helper()
	e := w.agent.Envelope(w.t, tenant, name, payload)
	a := w.agent.Attestation(e)
	a.Policy = p
	_, err := w.ledgers.Append(w.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, a)}}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}
