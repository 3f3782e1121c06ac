package approval_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// The service dies before or after any write to the store between the question and the grant and its callbacks. A new
// process starts on the stored state: all reads agree, every earlier answer still holds, and a client that retries
// reaches the end.
func TestDeathAtEachWrite(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for _, after := range []bool{false, true} {
			n := 0
			for dieAt(t, open(t), n, after) {
				n++
			}
			if n < 10 { // question 2, vote 2, callback 2, consumption 2, callback 2
				t.Errorf("died at %d writes, want 10 or more", n)
			}
		}
	})
}

// dieAt reports whether the run has that many writes.
func dieAt(t *testing.T, engine storage.Engine, n int, after bool) bool {
	t.Helper()
	m := &enginetest.Mortal{Engine: engine}
	w := newWorldOn(t, ledgertest.On(t, m))
	m.DieAt(n, after)
	told := &answers{}
	told.way(w)
	died := m.Dead()
	if err := w.Ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	w = &world{Service: w.Again(t, engine), t: t, people: w.people, calls: w.calls, keys: w.keys}
	w.open()
	told.way(w)
	told.check(w, fmt.Sprintf("death at write %d, done %v", n, after))
	return died
}

// answers are the answers that a client received from all processes.
type answers struct {
	asked approval.Approval
	voted bool
	grant string
}

// way runs from the question to the last callback, or until an answer is missing. It starts after the last answer.
func (a *answers) way(w *world) {
	w.t.Helper()
	ctx := w.t.Context()
	if a.asked.ID == "" {
		q := w.question(red)
		q.CallbackURL = "https://agent.example/hook"
		asked, _, err := w.approvals.Ask(ctx, red, q)
		if err != nil {
			return
		}
		a.asked = asked
	}
	if !a.voted {
		_, err := w.vote(red, a.asked, bob, approval.Approve)
		if err != nil && !fault.Is(err, fault.Conflict) {
			return
		}
		a.voted = true
	}
	w.deliver()
	note, err := w.approvals.Consume(ctx, red, a.asked.ID, w.claim(red, a.asked))
	if err != nil {
		return
	}
	if a.grant != "" && note != a.grant {
		w.t.Errorf("two grants:\n%s\n%s", a.grant, note)
	}
	a.grant = note
	w.deliver()
}

func (a *answers) check(w *world, when string) {
	w.t.Helper()
	if a.grant == "" {
		w.t.Fatalf("%s: the way had no end", when)
	}
	want := []string{"requested by ik_operator", "approved by acc_bob", "consumed by ik_operator"}
	if got := w.transitions(red, a.asked); !slices.Equal(got, want) {
		w.t.Errorf("%s: ledger: got %q, want %q", when, got, want)
	}
	if got := w.status(red, a.asked); got != approval.Consumed {
		w.t.Errorf("%s: got %s", when, got)
	}
	said := map[string]string{} // by webhook-id
	for i, name := range w.calls.names {
		if before, ok := said[name]; ok && before != w.calls.bodies[i] {
			w.t.Errorf("%s: %s was called with %s and %s", when, name, before, w.calls.bodies[i])
		}
		said[name] = w.calls.bodies[i]
	}
	if bodies := strings.Join(slices.Sorted(maps.Values(said)), "\n"); len(said) != 2 ||
		!strings.Contains(bodies, `"approval.approved"`) || !strings.Contains(bodies, `"approval.consumed"`) {
		w.t.Errorf("%s: calls: got %v", when, said)
	}
	w.Pass(2 * time.Hour)
	w.deliver()
	if err := w.approvals.Sweep(w.t.Context()); err != nil {
		w.t.Errorf("%s: %v", when, err)
	}
	for _, left := range []struct {
		tenant id.Tenant
		kind   storage.Kind
	}{{id.Service, "approval_due"}, {id.Service, "outbox_due"}, {red, "outbox"}, {red, "outbox_dead"}, {red, "approval_open"}} {
		if found, err := w.Engine.Scan(w.t.Context(), left.tenant, left.kind, "", "", 10); err != nil || len(found) > 0 {
			w.t.Errorf("%s: %s: got %v, %v; want none", when, left.kind, found, err)
		}
	}
	if tally, err := w.Engine.Get(w.t.Context(), red, "approval_tally", ""); err != nil || !strings.HasPrefix(string(tally.Value), `{"open":0,`) {
		w.t.Errorf("%s: tally %s, %v", when, tally.Value, err)
	}
}
