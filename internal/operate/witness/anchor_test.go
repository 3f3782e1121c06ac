package witness

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/internal/test/witnesstest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// reopen continues with a store whose anchors are lost, under a policy and with or without confirmation by witnesses.
func (w *world) reopen(store *storagetest.Model, policy string, anchor bool) {
	w.t.Helper()
	w.stop()
	w.Service = w.Adopted(w.t, store)
	w.Store = store
	w.start(policy, func(o *Options) { o.Anchor = anchor })
	w.Witness = w.witnesses
}

func (w *world) level(tenant id.Tenant) log.Level { return w.State(w.t, tenant).Fault().Level }

// cosign has both ledgers cosigned in their current state.
func (w *world) cosign(by ...*witnesstest.Witness) {
	w.t.Helper()
	w.eventually("both are cosigned", func() bool { return w.by(red, by...) == len(by) && w.by(blue, by...) == len(by) })
}

// The anchors are lost, but the store is unchanged: two of three witnesses say that they have seen nothing newer, and
// both organizations continue. With only the third they do not.
func TestQuorumStandsInForAnAnchor(t *testing.T) {
	w := newWorld(t)
	x, y, z := w.witness("x.example"), w.witness("y.example"), w.witness("z.example")
	policy := x.PolicyLine("x") + y.PolicyLine("y") + z.PolicyLine("z") + "group two 2 x y z\nquorum two\n"
	w.start(policy)
	w.append(red)
	w.append(blue)
	w.append(red)
	w.cosign(x, y, z)
	w.stop()
	away := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTooManyRequests) }
	x.AnswerWith(away)
	y.AnswerWith(away)

	w.reopen(w.Store.Reopen(), policy, true)
	w.eventually("z confirms both, x and y are away", func() bool { return w.asks(cosigned) >= 2 && w.asks(unwell) >= 2 && w.ended() })
	if err := w.change(red, "too early"); fault.Of(err).Code != "read_only" {
		t.Fatalf("with one witness of two: got %v", err)
	}
	x.AnswerWith(nil)
	w.later(time.Minute)
	for _, tenant := range []id.Tenant{red, blue} {
		w.eventually("it goes on", func() bool { return w.change(tenant, "goes on") == nil })
	}
	if got := w.metric("agentledger_witness_anchored_total", ""); got != 2 {
		t.Errorf("%d heads were confirmed", got)
	}
	w.stop()

	// From then on there are anchors: another start asks nobody for them.
	again := w.Again(t, w.Store)
	for _, tenant := range []id.Tenant{red, blue} {
		if got := again.State(t, tenant).Fault(); got.Level != log.Healthy {
			t.Errorf("after a restart: got %+v", got)
		}
	}
}

// The store is from before red's newest events and has no anchors: the witness has seen more of red's log, which is
// frozen. It has seen nothing newer of blue's log, which continues.
func TestQuorumFindsARollback(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	policy := x.PolicyLine("x") + "quorum x\n"
	w.start(policy)
	w.append(red)
	w.append(blue)
	w.cosign(x)
	older := w.Store.Reopen()
	w.append(red)
	w.cosign(x)
	w.reopen(older, policy, true)
	w.eventually("red is frozen", func() bool { return w.level(red) == log.Frozen })
	w.eventually("blue goes on", func() bool { return w.change(blue, "goes on") == nil })
	if err := w.change(red, "on a fork"); fault.Of(err).Code != "frozen" {
		t.Errorf("red: got %v", err)
	}
	if got := w.metric("agentledger_witness_anchored_total", ""); got != 1 {
		t.Errorf("%d heads were confirmed", got)
	}
}

// These do not confirm a head: a witness with a smaller tree, which is not asked to extend it; one with another tree of
// that size; and any witness if the setting is off.
func TestWhatConfirmsNoHead(t *testing.T) {
	for name, row := range map[string]struct {
		set    func(*world, *witnesstest.Witness)
		anchor bool
		level  log.Level
		called bool
	}{
		"the setting is off": {func(*world, *witnesstest.Witness) {}, false, log.ReadOnly, false},
		"a smaller tree":     {func(w *world, x *witnesstest.Witness) { x.SetLatest(w.at(red, 1)) }, true, log.ReadOnly, true},
		"an empty tree":      {func(w *world, x *witnesstest.Witness) { x.AddLog(w.key(red)) }, true, log.ReadOnly, true},
		"another tree":       {func(w *world, x *witnesstest.Witness) { x.SetLatest(w.foreign(2)) }, true, log.Frozen, true},
		"no size":            {func(_ *world, x *witnesstest.Witness) { x.AnswerWith(conflictAlone) }, true, log.ReadOnly, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			x := w.witness("x.example")
			policy := x.PolicyLine("x") + "quorum x\n"
			w.start(policy)
			w.append(red)
			w.append(blue)
			w.append(red)
			w.cosign(x)
			w.stop()
			row.set(w, x)
			known := x.LatestCheckpoint(ledgertest.Origin(red))
			before, _ := x.CountCalls()
			w.reopen(w.Store.Reopen(), policy, row.anchor)
			w.pass(0)
			// A witness that failed for both logs is paused. A ledger that waits for it is not idle, and is asked about
			// again and again.
			w.eventually("nothing left to do", func() bool {
				calls, _ := x.CountCalls()
				return w.idle() || name == "no size" && calls > before && w.ended()
			})
			w.eventually("its level", func() bool { return w.level(red) == row.level })
			if calls, _ := x.CountCalls(); (calls > before) != row.called {
				t.Errorf("%d calls", calls-before)
			}
			if err := w.change(red, "no"); err == nil {
				t.Error("red goes on")
			}
			if got := x.LatestCheckpoint(ledgertest.Origin(red)); got != known {
				t.Errorf("the witness was brought from %+v to %+v", known, got)
			}
			if goesOn := w.change(blue, "goes on") == nil; goesOn != (row.called && name != "no size") {
				t.Errorf("blue goes on: %v", goesOn)
			}
		})
	}
}

// conflictAlone answers 409 without a size.
func conflictAlone(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusConflict) }

// If the service has a quorum, an organization's own witnesses do not confirm a head alone; the service's alone do not
// confirm it either.
func TestOwnWitnessesConfirmNothingAlone(t *testing.T) {
	w := newWorld(t)
	house, own := w.witness("house.example"), w.witness("own.example")
	policy := house.PolicyLine("house") + "quorum house\n"
	w.start(policy)
	w.name(red, org.Witnessing{Policy: own.PolicyLine("own") + "quorum own\n"})
	w.append(blue)
	w.eventually("red", func() bool { return w.by(red, house, own) == 2 })
	w.eventually("blue", func() bool { return w.by(blue, house) == 1 })
	w.stop()
	for _, away := range []*witnesstest.Witness{house, own} {
		house.AnswerWith(nil)
		own.AnswerWith(nil)
		away.AnswerWith(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusTooManyRequests) })
		w.reopen(w.Store.Reopen(), policy, true)
		w.eventually("the other is asked", func() bool { return w.asks(cosigned) > 0 && w.asks(unwell) > 0 && w.ended() })
		if err := w.change(red, "no"); fault.Of(err).Code != "read_only" {
			t.Errorf("got %v", err)
		}
	}
	w.eventually("blue goes on", func() bool { return w.change(blue, "goes on") == nil })
	own.AnswerWith(nil)
	w.later(time.Minute)
	w.eventually("red goes on", func() bool { return w.change(red, "goes on") == nil })
}

// The first request before a first event starts with the ledger's own size. A witness with a smaller size says so and
// gets a proof from there.
func TestFirstAskTellsOwnSize(t *testing.T) {
	w := newWorld(t)
	x := w.witness("x.example")
	w.start(x.PolicyLine("x") + "quorum x\n")
	w.append(red)
	w.append(blue)
	w.cosign(x)
	w.stop()
	w.append(red) // no witness is asked about it
	w.append(red)
	var sizes []string
	x.WrapHandler(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			first, _, _ := strings.Cut(string(body), "\n")
			sizes = append(sizes, first)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(rw, r)
		})
	})
	w.restore(w.Store.Reopen())
	for _, tenant := range []id.Tenant{red, blue} {
		if err := w.change(tenant, "goes on"); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(sizes, ", "); got != "old 3, old 1, old 1" {
		t.Errorf("got %s", got)
	}
}
