package storagetest

import (
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func durableSteps(s *store) {
	a, model := newAuthor(alpha), NewModel()
	var p probe
	for range 6 {
		b := full(a, 2)
		a.head = b.Head
		s.mustAppend(b)
		model.Append([]storage.Batch{b}).Wait()
		p.mergeProbe(probeFor(b))
		s.reopenStore()
		p.sameContents(s.T, s, model, alpha, beta)
	}
}

func durableBarrier(s *store) {
	a := newAuthor(alpha)
	pending := s.Append([]storage.Batch{a.nextBatch(3)})
	if err := s.Barrier(s.Context()); err != nil {
		s.Fatalf("barrier: %v", err)
	}
	wantError(s.T, pending.Wait()[0], nil)
	s.reopenStore()
	if err := s.Barrier(s.Context()); err != nil {
		s.Fatalf("barrier: %v", err)
	}
	if got := s.headOrZero(alpha); got != a.head {
		s.Errorf("got head %+v, want %+v", got, a.head)
	}
}

func durableClosed(s *store) {
	a := newAuthor(alpha)
	s.mustAppend(a.nextBatch(1))
	if err := s.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
	_, headErr := s.Head(s.Context(), alpha)
	_, getErr := s.Get(s.Context(), alpha, "agent", "a")
	_, scanErr := s.Scan(s.Context(), alpha, "agent", "", "", 1)
	_, lookupErr := s.Lookup(s.Context(), alpha, nil)
	_, tileErr := s.TileHashes(s.Context(), alpha, 0, 0, 0, 8)
	_, rootsErr := s.TileRoots(s.Context(), alpha, 0, 0, 0)
	_, countersErr := s.Counters(s.Context(), alpha, nil)
	errs := []error{
		headErr, getErr, scanErr, lookupErr, tileErr, rootsErr, countersErr,
		s.appendBatch(a.draft(1))[0], s.Barrier(s.Context()), s.Close(),
		s.Entries(s.Context(), []storage.Position{{Tenant: alpha}})[0].Err,
		s.Write(s.Context(), alpha, []storage.Change{putChange("agent", "a", "x", 0)}),
		firstError(s.Events(s.Context(), alpha, 0, 1, 0)), firstError(s.Tenants(s.Context())),
		firstError(s.IdempotencyKeys(s.Context(), alpha, 0, 1)), firstError(s.Partition(s.Context(), alpha)),
	}
	for i, err := range errs {
		s.Logf("call %d", i)
		wantError(s.T, err, storage.ErrUnavailable)
	}
	s.Engine = s.open(s.T)
	if got, want := s.headOrZero(alpha).Size, id.Index(1); got != want {
		s.Errorf("got size %d, want %d", got, want)
	}
}

func firstError[V any](seq func(func(V, error) bool)) (first error) {
	seq(func(_ V, err error) bool {
		first = err
		return false
	})
	return first
}
