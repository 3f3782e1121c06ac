package storagetest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// erasePromises are the promises about Event.Erases and Event.ErasedBy.
func erasePromises() []promise {
	return []promise{
		{"erase/events alone and together, once", eraseSome},
		{"erase/events that were erased elsewhere", eraseArrived},
		{"erase/as many as one batch may", eraseAtBound},
		{"erase/refused as a whole", eraseRefused},
		{"erase/while events are read", eraseWhileRead},
	}
}

// erasing returns the next batch of n events, the first of which erases ranges.
func (a *author) erasing(n int, ranges ...id.Range) storage.Batch {
	b := a.nextBatch(n)
	b.Events[0].Erases = ranges
	return b
}

// wantErased returns events as they are read after the event by has erased those at the indices.
func wantErased(events []storage.Event, by id.Index, indices ...id.Index) []storage.Event {
	events = slices.Clone(events)
	for _, i := range indices {
		if e := &events[i]; e.ErasedBy == 0 {
			e.Envelope, e.ErasedBy = nil, by
		}
	}
	return events
}

// eraseSome erases events, twice: single ones, consecutive ones and one with a long envelope.
func eraseSome(s *store) {
	a, b := newAuthor(alpha), newAuthor(beta)
	first := a.nextBatch(9)
	first.Events[2].Envelope = slices.Repeat([]byte("apart "), 8<<10)
	first.Events[4].Envelope, first.Events[8].Envelope = nil, nil // as in older stores
	lone := a.nextBatch(1)
	other := b.nextBatch(9)
	s.mustAppend(first, other)
	s.mustAppend(lone)
	want := append(slices.Clone(first.Events), lone.Events...)

	next := a.erasing(2, id.Range{Begin: 1, End: 3}, id.Range{Begin: 4, End: 5}, id.Range{Begin: 9, End: 10})
	next.Events[1].Erases = []id.Range{{Begin: 2, End: 4}} // the first event of the batch erases 2
	s.mustAppend(next)
	want = append(wantErased(wantErased(want, 10, 1, 2, 4, 9), 11, 3), next.Events...)
	again := a.erasing(1, id.Range{End: 4})
	s.mustAppend(again)
	want = append(wantErased(want, 12, 0), again.Events...)
	for range 2 {
		s.wantEvents(0, 13, everything, want)
		for i := range id.Index(13) {
			s.wantEvents(i, i+1, everything, want[i:i+1])
			s.wantEvents(i, i+1, storage.FieldEnvelope, want[i:i+1])
		}
		s.wantEvents(1, 11, storage.FieldEnvelope, want[1:11])
		s.wantEvents(1, 11, 0, want[1:11])
		s.reopenStore()
	}
	model := NewModel()
	model.Append([]storage.Batch{other}).Wait()
	probeFor(other).sameContents(s.T, s.Engine, model, beta)
}

// eraseArrived stores events that were erased in another store.
func eraseArrived(s *store) {
	a := newAuthor(alpha)
	b := a.nextBatch(6)
	b.Events[1].Envelope, b.Events[1].ErasedBy = nil, 5
	b.Events[2].Envelope, b.Events[2].ErasedBy = nil, 70
	lone := a.nextBatch(1)
	lone.Events[0].Envelope, lone.Events[0].ErasedBy = nil, 1<<40
	s.mustAppend(b)
	s.mustAppend(lone)
	for range 2 {
		s.wantEvents(0, 7, everything, append(slices.Clone(b.Events), lone.Events...))
		s.wantEvents(6, 7, everything, lone.Events)
		s.reopenStore()
	}
}

// eraseAtBound erases as many events as one batch may.
func eraseAtBound(s *store) {
	a := newAuthor(alpha)
	var want []storage.Event
	for range storage.MaxErased / 256 {
		b := a.nextBatch(256)
		s.mustAppend(b)
		want = append(want, b.Events...)
	}
	next := a.erasing(1, id.Range{End: storage.MaxErased})
	s.mustAppend(next)
	for i := range want {
		want[i].Envelope, want[i].ErasedBy = nil, storage.MaxErased
	}
	s.wantEvents(0, storage.MaxErased+1, everything, append(want, next.Events...))
}

// eraseRefused checks that impossible erasures are rejected, and nothing of their batches is applied.
func eraseRefused(s *store) {
	a := newAuthor(alpha)
	first := a.nextBatch(3)
	s.mustAppend(first)
	for name, change := range map[string]func(*storage.Batch){
		"empty":                   func(b *storage.Batch) { b.Events[0].Erases = []id.Range{{Begin: 1, End: 1}} },
		"beyond the ledger":       func(b *storage.Batch) { b.Events[0].Erases = []id.Range{{Begin: 1, End: 4}} },
		"more than MaxErased":     func(b *storage.Batch) { b.Events[0].Erases = slices.Repeat([]id.Range{{End: 3}}, 1366) },
		"erased with an envelope": func(b *storage.Batch) { b.Events[0].ErasedBy = 9 },
		"erased by itself":        func(b *storage.Batch) { b.Events[0].Envelope, b.Events[0].ErasedBy = nil, 3 },
	} {
		b := a.draft(1)
		change(&b)
		s.Run(name, func(t *testing.T) { wantRefused(t, s.appendBatch(b)[0]) })
	}
	moved, stale := a.draft(1), a.draft(1)
	moved.Expect.Root[0]++
	moved.Events[0].Erases = []id.Range{{End: 3}}
	stale.Events[0].Erases = []id.Range{{End: 3}}
	stale.Changes = []storage.Change{putChange("hold", "", "x", 1)}
	wantError(s.T, s.appendBatch(moved)[0], storage.ErrConflict)
	wantItem(s.T, s.appendBatch(stale)[0], storage.ErrStale, 0)
	s.wantEvents(0, 3, everything, first.Events)
}

// eraseWhileRead reads events while they are erased: each must have its envelope or its ErasedBy.
func eraseWhileRead(s *store) {
	const events = 64
	a := newAuthor(alpha)
	first := a.nextBatch(events)
	for i := range first.Events {
		if i%2 == 0 {
			first.Events[i].Envelope = slices.Repeat([]byte("apart "), 8<<10)
		}
	}
	s.mustAppend(first)
	var readers sync.WaitGroup
	var done atomic.Bool
	for _, step := range []id.Index{1, events} {
		readers.Go(func() {
			for begin := id.Index(0); !done.Load(); begin = (begin + step) % events {
				for e, err := range s.Events(s.Context(), alpha, begin, begin+step, storage.FieldEnvelope) {
					if err != nil || (e.Envelope == nil) != (e.ErasedBy > e.Index) {
						s.Errorf("event %d: %d bytes, erased by %d, %v", e.Index, len(e.Envelope), e.ErasedBy, err)
						return
					}
				}
			}
		})
	}
	for i := range id.Index(events) {
		s.mustAppend(a.erasing(1, id.Range{Begin: i, End: i + 1}))
	}
	done.Store(true)
	readers.Wait()
}
