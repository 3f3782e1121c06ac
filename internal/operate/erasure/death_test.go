package erasure_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// The process dies at any write of an erasure or a retention, before or after that write, and another continues with
// what is stored. Nothing is half erased, nothing is erased or counted twice, and everything is erased in the end.
func TestDeathAtEachWrite(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for name, way := range map[string]func(*world, *erasure.ID){"request": requestWay, "retention": retentionWay} {
			t.Run(name, func(t *testing.T) {
				for _, after := range []bool{false, true} {
					n := 0
					for dieAt(t, open(t), n, after, way) {
						n++
					}
					if n < 5 {
						t.Errorf("died at %d writes, want 5 or more", n)
					}
				}
			})
		}
	})
}

// askedWay begins an erasure, unless one has begun, and continues to its end or until an answer is missing.
func requestWay(w *world, name *erasure.ID) {
	if list, err := w.erasures.List(w.t.Context(), red, "", 10); err == nil && len(list) > 0 {
		*name = list[0].ID
	}
	if *name == "" {
		made, err := w.erasures.Ask(w.t.Context(), red, ann, erasure.Wanted{Trace: "trc_pay", Reason: erasure.ByRequest})
		if err != nil {
			return
		}
		*name = made.ID
	}
	w.drainOrDie()
}

// retentionWay sets a retention for which everything is too old.
func retentionWay(w *world, _ *erasure.ID) {
	days := 1
	if _, err := w.orgs.Change(w.t.Context(), red, ann, org.Patch{RetentionDays: &days, BeginRetention: w.erasures.BeginRetention}); err != nil {
		return
	}
	w.drainOrDie()
}

func (w *world) drainOrDie() {
	for {
		more, err := w.erasures.Sweep(w.t.Context())
		if err != nil || !more {
			return
		}
	}
}

// dieAt reports whether the operation performs that many writes.
func dieAt(t *testing.T, engine storage.Engine, n int, after bool, way func(*world, *erasure.ID)) bool {
	t.Helper()
	what := fmt.Sprintf("death at write %d, done %v", n, after)
	m := &enginetest.Mortal{Engine: engine}
	w := newWorld(t, ledgertest.On(t, m))
	w.furnish(red)
	first := sent{"paid", string(w.first[red]), "trc_pay", "mia@red", "acme.refund", "canary one"}
	second := sent{"more", "agt_a", "trc_pay", "joe", "acme.read", "canary two"}
	pending := w.ask(red, w.question(red, first))
	if err := w.approvals.Cancel(t.Context(), red, "ik_test", pending.ID); err != nil {
		t.Fatal(err)
	}
	w.send(red, first, second)
	w.send(blue, first, second)
	w.notify()
	w.Pass(2 * day)
	var name erasure.ID
	m.DieAt(n, after)
	way(w, &name)
	died := m.Dead()
	if err := w.Ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	w = &world{Service: w.Again(t, engine), t: t, first: w.first, key: w.key}
	w.open()
	w.checkWhole(what)
	way(w, &name)
	w.Pass(time.Minute) // the pause after a failure
	w.drain()
	w.checkWhole(what)
	wantText(t, what+": left", w.left(red), "[]")
	wantText(t, what+": the other organization", w.left(blue), "[paid more]")
	wantText(t, what+": places", w.places(red, "canary"), "[]")
	if name != "" {
		got := w.find(red, name)
		wantText(t, what+": counts", fmt.Sprintf("%s %d %d %d %d", got.State, got.Matched, got.Erased, got.Already, got.ApprovalsErased), "done 2 2 0 1")
	}
	return died
}

// checkWhole checks that exactly what is stated as erased is erased, that nothing is erased twice, and that the payload
// of the approval is erased with its event or not at all.
func (w *world) checkWhole(what string) {
	w.t.Helper()
	stated := make(map[id.Index]id.Index)
	payloads := 0
	all := w.events(red)
	for _, e := range all {
		switch e.ActionKind {
		case event.KindErasure:
			envelope, err := event.Parse(e.Envelope, event.Options{Server: true})
			if err != nil {
				w.t.Fatal(err)
			}
			statement, err := event.ParseErasure(envelope)
			if err != nil {
				w.t.Fatal(err)
			}
			for at := range e.Index {
				if statement.Covers(at) && !strings.HasPrefix(all[at].ActionKind, "ledger_") {
					if by, twice := stated[at]; twice {
						w.t.Errorf("%s: event %d is erased by %d and %d", what, at, by, e.Index)
					}
					stated[at] = e.Index
				}
			}
		case "ledger_approval_erased":
			payloads++
		}
	}
	for _, e := range all {
		if by := stated[e.Index]; by != e.ErasedBy || (e.Envelope == nil) != (by != 0) {
			w.t.Errorf("%s: event %d: stated as erased by %d, stored as erased by %d, has envelope: %v", what, e.Index, by, e.ErasedBy, e.Envelope != nil)
		}
	}
	list, err := w.approvals.List(w.t.Context(), red, approval.Filter{}, "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	gone := 0
	for _, a := range list.Approvals {
		if (a.Payload == nil) != (a.ErasedAt != 0) {
			w.t.Errorf("%s: approval %s: erased at %v, payload %s", what, a.ID, a.ErasedAt, a.Payload)
		}
		if a.ErasedAt != 0 {
			gone++
		}
	}
	wantText(w.t, what+": payloads that are gone", gone, payloads)
}

// Erasures run concurrently with senders, readers, voters, replays and lists of both organizations. No reader sees half
// an erasure, and the other organization is not affected.
func TestRace(t *testing.T) {
	each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newWorld(t, ledgertest.On(t, open(t)))
		w.furnish(red)
		const rounds = 12
		var g sync.WaitGroup
		g.Go(func() { // an agent with its approvals, each of which is erased
			for n := range rounds {
				e := sent{fmt.Sprintf("paid%d", n), string(w.first[red]), fmt.Sprintf("trc_%d", n), "mia@red", "acme.refund", fmt.Sprint("canary ", n)}
				a := w.ask(red, w.question(red, e))
				w.send(red, e)
				w.begin(red, erasure.Wanted{Trace: id.Trace(e.trace)})
				if _, err := w.approvals.Vote(t.Context(), red, a.ID, approval.Ballot{Account: "acc_bob", Vote: approval.Approve, Action: a.ActionDigest}); err != nil {
					t.Error(err)
				}
			}
		})
		done := make(chan struct{})
		var readers sync.WaitGroup
		for _, tenant := range []id.Tenant{red, blue} {
			readers.Go(func() { w.readUntil(done, tenant) })
		}
		readers.Go(func() {
			for running := true; running; {
				select {
				case <-done:
					running = false
				default:
				}
				if _, err := w.erasures.Sweep(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		for n := range rounds { // traffic of the other organization
			w.send(blue, sent{fmt.Sprintf("blue%d", n), "agt_a", "trc_1", "mia@red", "", "canary"})
		}
		g.Wait()
		close(done)
		readers.Wait()
		w.Pass(time.Minute)
		w.drain()
		w.checkWhole("after the race")
		wantText(t, "left", w.left(red), "[]")
		wantText(t, "left of the other", len(w.left(blue)), rounds)
		wantText(t, "places", w.places(red, "canary"), "[]")
		w.Audit(t, red)
	})
}

// readUntil reads an organization's events in all ways until done is closed. What was once read as erased never comes
// back.
func (w *world) readUntil(done <-chan struct{}, tenant id.Tenant) {
	gone := map[id.Index]bool{}
	for {
		select {
		case <-done:
			return
		default:
		}
		s, err := w.Ledgers.State(w.t.Context(), tenant)
		if err != nil {
			w.t.Error(err)
			return
		}
		for e, err := range w.Ledgers.Events(w.t.Context(), s, 0, s.Size(), storage.FieldRecord|storage.FieldEnvelope) {
			if err != nil {
				w.t.Error(err)
				return
			}
			if (e.Envelope == nil) != (e.ErasedBy != 0) || gone[e.Index] && e.Envelope != nil {
				w.t.Errorf("event %d: erased by %d, envelope %v", e.Index, e.ErasedBy, e.Envelope != nil)
			}
			gone[e.Index] = e.Envelope == nil
		}
		w.searchText(tenant, s)
	}
}

// searchText searches the events of a principal. All results must have that principal.
func (w *world) searchText(tenant id.Tenant, s *log.State) {
	page, err := w.index.List(context.WithoutCancel(w.t.Context()), tenant, index.Query{Filter: index.Filter{Principal: "mia@red"}, Limit: 100})
	if err != nil {
		w.t.Error(err)
		return
	}
	for _, row := range page.Rows {
		if row.Principal != "mia@red" || row.ErasedBy != 0 {
			w.t.Errorf("found %+v at size %d", row, s.Size())
		}
	}
}
