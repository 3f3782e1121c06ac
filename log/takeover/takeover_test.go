package takeover_test

import (
	"context"
	"errors"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
	"github.com/agentledger/agentledger/tlog"
)

const red, blue id.Tenant = 11, 12

// empty is the head of a ledger without events.
func empty(epoch uint64) storage.Head {
	return storage.Head{Root: tlog.EmptyRoot(), ConfigVersion: 1, Epoch: epoch}
}

// newStore returns a store with two empty ledgers.
func newStore(t *testing.T) *storagetest.Model {
	t.Helper()
	m := storagetest.NewModel()
	for _, tenant := range []id.Tenant{red, blue} {
		b := storage.Batch{Tenant: tenant, Head: empty(0)}
		if err := m.Append([]storage.Batch{b}).Wait()[0]; err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func epoch(t *testing.T, m *storagetest.Model, tenant id.Tenant) uint64 {
	t.Helper()
	head, err := m.Head(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return head.Epoch
}

func always(id.Tenant) bool { return true }

func TestTakeOverFencesOthers(t *testing.T) {
	m := newStore(t)
	one, two := takeover.NewFences(m, always), takeover.NewFences(m, always)
	steps := []struct {
		name   string
		by     *takeover.Fences
		before func()
		want   uint64
	}{
		{"first", one, func() {}, 1},
		{"again", one, func() {}, 1},
		{"the other", two, func() {}, 2},
		{"back", one, func() {}, 3},
		{"forgotten", one, func() { one.Forget(red) }, 4},
		{"the neighbour is forgotten", one, func() { one.Forget(blue) }, 4},
		{"all forgotten", one, func() { one.ForgetAll(always) }, 5},
	}
	for _, s := range steps {
		s.before()
		head, err := s.by.TakeOver(t.Context(), red)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if stored, err := m.Head(t.Context(), red); err != nil || head != stored {
			t.Errorf("%s: got head %v, %v; stored is %v", s.name, head, err, stored)
		}
		if got := epoch(t, m, red); got != s.want || !s.by.Holds(red, got) {
			t.Errorf("%s: got epoch %d, held %v; want %d", s.name, got, s.by.Holds(red, got), s.want)
		}
	}
	if two.Holds(red, 5) || two.Holds(blue, 0) {
		t.Error("an epoch is held that the process did not give")
	}
	if got := epoch(t, m, blue); got != 0 {
		t.Errorf("the other organization: got epoch %d", got)
	}
}

func TestTakeOverOfALostLedger(t *testing.T) {
	m := newStore(t)
	owned := true
	f := takeover.NewFences(m, func(tenant id.Tenant) bool { return owned || tenant == blue })
	m.Fail(func(storage.Batch) storagetest.Failure { owned = false; return storagetest.NoFailure })
	_, err := f.TakeOver(t.Context(), red)
	if !errors.Is(err, takeover.ErrNotOwner) || !fault.Is(err, fault.Unavailable) || fault.Of(err).Code != "not_owner" {
		t.Errorf("lost meanwhile: got %v", err)
	}
	if _, err := f.TakeOver(t.Context(), blue); err != nil {
		t.Errorf("the other organization: %v", err)
	}
}

func TestTakeOverWhenTheStoreFails(t *testing.T) {
	for name, tt := range map[string]struct {
		fails []storagetest.Failure
		want  error
		epoch uint64
	}{
		"the request is lost": {[]storagetest.Failure{storagetest.RequestLost}, nil, 1},
		"the answer is lost":  {[]storagetest.Failure{storagetest.AnswerLost}, nil, 2},
		"refused":             {[]storagetest.Failure{storagetest.Refused}, storage.ErrUnavailable, 0},
		"broken":              {[]storagetest.Failure{storagetest.Broken}, storage.ErrBroken, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newStore(t)
			m.Fail(func(storage.Batch) storagetest.Failure {
				if len(tt.fails) == 0 {
					return storagetest.NoFailure
				}
				failure := tt.fails[0]
				tt.fails = tt.fails[1:]
				return failure
			})
			f := takeover.NewFences(m, always)
			if _, err := f.TakeOver(t.Context(), red); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if tt.want == nil && epoch(t, m, red) != tt.epoch {
				t.Errorf("got epoch %d, want %d", epoch(t, m, red), tt.epoch)
			}
		})
	}
}

// racing has another writer between each read of a head and the append.
type racing struct {
	*storagetest.Model
	other *takeover.Fences
}

func (r racing) Append(batches []storage.Batch) storage.Pending {
	if _, err := r.other.TakeOver(context.Background(), batches[0].Tenant); err != nil {
		panic(err)
	}
	r.other.Forget(batches[0].Tenant)
	return r.Model.Append(batches)
}

func TestTakeOverGivesUp(t *testing.T) {
	m := newStore(t)
	f := takeover.NewFences(racing{m, takeover.NewFences(m, always)}, always)
	if _, err := f.TakeOver(t.Context(), red); !fault.Is(err, fault.Unavailable) || errors.Is(err, takeover.ErrNotOwner) {
		t.Errorf("got %v, want unavailable", err)
	}
	if _, err := f.TakeOver(t.Context(), 99); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("no ledger: got %v", err)
	}
}

func TestAwaitEndsWithTheContext(t *testing.T) {
	m := newStore(t)
	release := m.Hold()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := storage.Batch{Tenant: red, Expect: empty(0), Head: empty(1)}
	if err := takeover.Await(ctx, m.Append([]storage.Batch{b})); !errors.Is(err, storage.ErrUnknown) {
		t.Errorf("got %v, want an unknown outcome", err)
	}
	release()
	if got := epoch(t, m, red); got != 1 {
		t.Errorf("the append did not go on: epoch %d", got)
	}
}

func TestNoFences(t *testing.T) {
	m := newStore(t)
	f := takeover.NewFences(m, nil)
	f.Note(red, 7)
	f.Forget(red)
	f.ForgetAll(always)
	head, err := f.TakeOver(t.Context(), red)
	if err := errors.Join(f.Check(red), err); err != nil || epoch(t, m, red) != 0 || head != (storage.Head{}) {
		t.Errorf("got %v, epoch %d, head %v; want nothing done", err, epoch(t, m, red), head)
	}
}
