package storagetest

import (
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func guardNewLedger(s *store) {
	a := newAuthor(alpha)
	first := a.draft(0)
	wrong := first
	wrong.Expect.Epoch = 1
	wantError(s.T, s.appendBatch(wrong)[0], storage.ErrConflict)
	s.mustAppend(a.nextBatch(0))
	wantError(s.T, s.appendBatch(first)[0], storage.ErrConflict)
	got, err := s.Head(s.Context(), alpha)
	if err != nil || got != a.head {
		s.Errorf("got head %+v, %v, want %+v", got, err, a.head)
	}
}

func guardFields(s *store) {
	a := newAuthor(alpha)
	s.mustAppend(a.nextBatch(3))
	tests := []struct {
		field  string
		mutate func(*storage.Head)
	}{
		{"size one less", func(h *storage.Head) { h.Size-- }},
		{"size one more", func(h *storage.Head) { h.Size++ }},
		{"root", func(h *storage.Head) { h.Root[31] ^= 1 }},
		{"epoch", func(h *storage.Head) { h.Epoch++ }},
		{"config version", func(h *storage.Head) { h.ConfigVersion++ }},
		{"no ledger", func(h *storage.Head) { *h = storage.Head{} }},
	}
	for _, test := range tests {
		wrong := *a
		test.mutate(&wrong.head)
		if got := s.appendBatch(wrong.draft(1))[0]; !errors.Is(got, storage.ErrConflict) {
			s.Errorf("%s: got error %v, want %v", test.field, got, storage.ErrConflict)
		}
	}
	s.mustAppend(a.nextBatch(1))
}

func guardIgnores(s *store) {
	a := newAuthor(alpha)
	s.mustAppend(a.nextBatch(2))
	b := a.nextBatch(1)
	b.Expect.Last, b.Expect.LastReceived = id.Hash{}, 0
	s.mustAppend(b)
}

func guardAppliesNothing(s *store) {
	a := newAuthor(alpha)
	first := a.nextBatch(2)
	s.mustAppend(first)
	wrong := full(a, 3)
	wrong.Expect.Root[0] ^= 1
	want := NewModel()
	want.Append([]storage.Batch{first}).Wait()
	wantError(s.T, s.appendBatch(wrong)[0], storage.ErrConflict)
	probeFor(first, wrong).sameContents(s.T, s, want, alpha)
	s.reopenStore()
	probeFor(first, wrong).sameContents(s.T, s, want, alpha)
}

// full returns a batch with every kind of content.
func full(a *author, n int) storage.Batch {
	b := a.draft(n)
	for i := range b.Events {
		b.Events[i].IdempotencyKey = "key of " + string(b.Events[i].ID)
	}
	b.Tiles = []storage.Tile{a.makeTile(0, uint64(a.head.Size)), a.makeTile(1, uint64(a.head.Size))}
	b.Counters = []storage.Counter{{Name: "events", Value: uint64(b.Head.Size)}}
	b.Changes = []storage.Change{putChange("agent", "agent-"+string(b.Events[0].ID), "value", 0)}
	return b
}

func guardFirst(s *store) {
	a := newAuthor(alpha)
	s.mustAppend(a.nextBatch(2))
	wrong := a.draft(1)
	wrong.Expect.Epoch++
	wrong.Events[0].ID = "event-0"
	wrong.Changes = []storage.Change{putChange("agent", "a", "value", 7)}
	wantError(s.T, s.appendBatch(wrong)[0], storage.ErrConflict)
}

func guardContention(s *store) {
	const writers, rounds = 8, 20
	var wins [writers]int
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			a := newAuthor(alpha)
			a.random = rand.New(rand.NewPCG(uint64(w), 3))
			for wins[w] < rounds {
				a.head = s.headOrZero(alpha)
				b := a.draft(1)
				b.Events[0].ID = id.Event(b.Head.Root.String())
				err := s.Append([]storage.Batch{b}).Wait()[0]
				if err == nil {
					wins[w]++
				} else if !errors.Is(err, storage.ErrConflict) {
					s.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	s.reopenStore()
	got := len(collect(s.T, s.Events(s.Context(), alpha, 0, storage.NoIndex, storage.FieldRecord)))
	if want := writers * rounds; got != want || s.headOrZero(alpha).Size != id.Index(want) {
		s.Errorf("got %d events and size %d, want %d", got, s.headOrZero(alpha).Size, want)
	}
}

// guardLosers checks that, if many writers send whole batches for the same position of two ledgers, the store contains
// exactly the batches of the winners.
func guardLosers(s *store) {
	const writers, rounds = 6, 8
	model := NewModel()
	var p probe
	for round := range rounds {
		var batches [writers][]storage.Batch
		var results [writers][]error
		var all sync.WaitGroup
		for w := range writers {
			for _, tenant := range []id.Tenant{alpha, beta} {
				a := &author{tenant: tenant, head: s.headOrZero(tenant), random: rand.New(rand.NewPCG(uint64(tenant), uint64(w*rounds+round)))}
				b := full(a, 2)
				for i := range b.Events {
					b.Events[i].ID = id.Event(b.Head.Root.String()[:8+i])
				}
				batches[w] = append(batches[w], b)
				p.mergeProbe(probeFor(b))
			}
		}
		for w := range writers {
			all.Go(func() { results[w] = s.Append(batches[w]).Wait() })
		}
		all.Wait()
		for w := range writers {
			for i, err := range results[w] {
				if err == nil {
					wantError(s.T, model.Append(batches[w][i : i+1]).Wait()[0], nil)
				} else if !errors.Is(err, storage.ErrConflict) {
					s.Errorf("append: %v", err)
				}
			}
		}
	}
	s.reopenStore()
	p.sameContents(s.T, s, model, alpha, beta)
	if got, want := s.headOrZero(alpha).Size, id.Index(2*rounds); got != want {
		s.Errorf("got size %d, want %d", got, want)
	}
}

func (s *store) headOrZero(t id.Tenant) storage.Head {
	h, err := s.Head(s.Context(), t)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		s.Errorf("head: %v", err)
	}
	return h
}
