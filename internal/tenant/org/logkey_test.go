package org_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

func TestMain(m *testing.M) { os.Exit(enginetest.Main(m)) }

// rotating has two organizations, of which red rotates its log keys.
type rotating struct {
	*ledgertest.Service
	t    *testing.T
	orgs *org.Orgs
}

func newRotating(t *testing.T, s *ledgertest.Service) *rotating {
	t.Helper()
	r := &rotating{Service: s, t: t}
	var err error
	if r.orgs, err = org.New(org.Options{Records: s.Engine, Events: s.SystemEvents, Ledgers: s.Ledgers, Clock: s.Clock}); err != nil {
		t.Fatal(err)
	}
	return r
}

// rotate makes n steps, alternating between the begin and the end of an overlap, and returns how many succeeded.
func (r *rotating) rotate(n int) (keys []log.LogKey, err error) {
	for i := range n {
		step := r.orgs.RotateLogKey
		if i%2 == 1 {
			step = r.orgs.RetireLogKey
		}
		key, err := step(r.t.Context(), red, sysevent.Operator)
		if err != nil {
			return keys, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// holds checks that keys, statements and checkpoint of red agree, and returns the transitions.
func (r *rotating) holds(when string) []string {
	r.t.Helper()
	s := r.State(r.t, red)
	keys := s.LogKeys()
	var transitions []string
	created, retired := 0, 0
	for _, statement := range r.Audit(r.t, red) {
		want := ""
		switch {
		case created == retired:
			created++
			want = fmt.Sprintf(`{"transition":"log_key_created","vkey":%q}`, keyAt(keys, created))
			transitions = append(transitions, "created")
		default:
			want = fmt.Sprintf(`{"transition":"log_key_retired","vkey":%q}`, keyAt(keys, retired))
			retired++
			transitions = append(transitions, "retired")
		}
		if statement.Kind != "ledger_log_key" || statement.Principal != "operator" || statement.Payload != want {
			r.t.Errorf("%s: got %+v, want %s", when, statement, want)
		}
	}
	if len(keys) != created+1 {
		r.t.Errorf("%s: got %d keys, of which %d were stated", when, len(keys), created)
	}
	for i, k := range keys {
		if (k.To != log.NoEnd) != (i < retired) {
			r.t.Errorf("%s: key %d signs [%d, %d), and %d were retired", when, i, k.From, k.To, retired)
		}
		c, err := tlog.OpenCheckpoint(s.Checkpoint(), k.Verifier)
		if (err == nil) != (k.From <= s.Size() && s.Size() < k.To) || err == nil && c.Root != s.Root() {
			r.t.Errorf("%s: key %d of [%d, %d) and the checkpoint at %d: %v", when, i, k.From, k.To, s.Size(), err)
		}
	}
	if other := r.State(r.t, blue); len(other.LogKeys()) != 1 || other.Size() != 0 {
		r.t.Errorf("%s: the other organization has %d keys, %d events", when, len(other.LogKeys()), other.Size())
	}
	return transitions
}

func keyAt(keys []log.LogKey, i int) string {
	if i >= len(keys) {
		return "none"
	}
	return keys[i].Verifier.String()
}

// Two rotations, on each engine, and what is refused between their steps.
func TestRotateLogKey(t *testing.T) {
	test := func(t *testing.T, s *ledgertest.Service) {
		r := newRotating(t, s)
		r.Found(t, red)
		r.Found(t, blue)
		if _, err := r.orgs.RetireLogKey(t.Context(), red, sysevent.Operator); !fault.Is(err, fault.Conflict) {
			t.Errorf("retired the only key: %v", err)
		}
		answered, err := r.rotate(3)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.orgs.RotateLogKey(t.Context(), red, sysevent.Operator); !fault.Is(err, fault.Conflict) {
			t.Errorf("rotated while two sign: %v", err)
		}
		keys := r.State(t, red).LogKeys()
		want := []log.LogKey{{Verifier: keys[1].Verifier, From: 1, To: log.NoEnd}, {Verifier: keys[0].Verifier, From: 0, To: 2}, {Verifier: keys[2].Verifier, From: 3, To: log.NoEnd}}
		if !slices.Equal(answered, want) {
			t.Errorf("got %+v, want %+v", answered, want)
		}
		if got := r.holds("done"); !slices.Equal(got, []string{"created", "retired", "created"}) {
			t.Errorf("got %v", got)
		}
		if _, err := r.orgs.RotateLogKey(t.Context(), id.Tenant(99), sysevent.Operator); !fault.Is(err, fault.NotFound) {
			t.Errorf("nobody's log: %v", err)
		}
	}
	t.Run("memory", func(t *testing.T) { test(t, ledgertest.New(t)) })
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) { test(t, ledgertest.On(t, open(t))) })
}

// Of many concurrent calls that begin a rotation, one succeeds.
func TestOneOfManyRotations(t *testing.T) {
	r := newRotating(t, ledgertest.New(t))
	r.Found(t, red)
	r.Found(t, blue)
	const callers = 8
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() { _, errs[i] = r.orgs.RotateLogKey(t.Context(), red, sysevent.Operator) })
	}
	all.Wait()
	done := 0
	for _, err := range errs {
		if err == nil {
			done++
		} else if !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	if got := r.holds("after all"); done != 1 || len(got) != 1 {
		t.Errorf("%d succeeded, stated %v", done, got)
	}
}

// The service dies at any write of a rotation, before or after that write, and another continues with what is stored:
// the state is consistent and contains what was answered, and the next step is possible.
func TestDeathInRotation(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for _, after := range []bool{false, true} {
			n := 0
			for dieInRotation(t, open(t), n, after) {
				n++
			}
			if n < 4 {
				t.Errorf("died at %d writes, want 4 or more", n)
			}
		}
	})
}

// dieInRotation reports whether two rotations perform that many writes.
func dieInRotation(t *testing.T, engine storage.Engine, n int, after bool) bool {
	t.Helper()
	m := &enginetest.Mortal{Engine: engine}
	r := newRotating(t, ledgertest.On(t, m))
	r.Found(t, red)
	r.Found(t, blue)
	m.DieAt(n, after)
	answered, _ := r.rotate(4)
	died := m.Dead()
	if err := r.Ledgers.Close(); err != nil {
		t.Fatal(err)
	}
	when := fmt.Sprintf("death at write %d, done %v", n, after)
	r = newRotating(t, r.Again(t, engine))
	stated := r.holds(when)
	if len(stated) < len(answered) || len(stated) > len(answered)+1 {
		t.Errorf("%s: %d steps were answered, and %v stated", when, len(answered), stated)
	}
	for _, k := range answered {
		if !slices.ContainsFunc(r.State(t, red).LogKeys(), func(is log.LogKey) bool { return is.Verifier == k.Verifier }) {
			t.Errorf("%s: the key %s was answered and is missing", when, k.Verifier)
		}
	}
	next := r.orgs.RotateLogKey
	if len(stated)%2 == 1 {
		next = r.orgs.RetireLogKey
	}
	if _, err := next(t.Context(), red, sysevent.Operator); err != nil {
		t.Errorf("%s: the next step: %v", when, err)
	}
	r.holds(when + ", and the next step")
	return died
}
