package storagetest

import (
	"maps"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func appendEmpty(s *store) {
	if got := s.appendBatch(); len(got) != 0 {
		s.Errorf("got %v, want no results", got)
	}
}

func appendHeadOnly(s *store) {
	a := newAuthor(alpha)
	s.mustAppend(a.nextBatch(2))
	b := a.draft(0)
	b.Head.Epoch, b.Head.Root = 9, a.head.Root
	s.mustAppend(b)
	if got := s.headOrZero(alpha); got != b.Head {
		s.Errorf("got head %+v, want %+v", got, b.Head)
	}
	a.head = b.Head
	s.mustAppend(a.nextBatch(1))
}

func appendIndependent(s *store) {
	authors := []*author{newAuthor(1), newAuthor(2), newAuthor(3), newAuthor(4)}
	for _, a := range authors {
		s.mustAppend(a.nextBatch(1))
	}
	conflict, duplicate, stale := authors[0].draft(2), authors[1].draft(2), authors[2].draft(2)
	conflict.Expect.Epoch++
	duplicate.Events[1].ID = "event-0"
	stale.Changes = []storage.Change{{Kind: "agent", Key: "a", Value: []byte("x"), If: 3, Item: 5}}
	results := s.appendBatch(conflict, duplicate, stale, authors[3].nextBatch(2))
	wantError(s.T, results[0], storage.ErrConflict)
	wantItem(s.T, results[1], storage.ErrDuplicate, 101)
	wantItem(s.T, results[2], storage.ErrStale, 5)
	wantError(s.T, results[3], nil)
	s.reopenStore()
	for _, a := range authors {
		if got := s.headOrZero(a.tenant); got != a.head {
			s.Errorf("tenant %d: got head %+v, want %+v", a.tenant, got, a.head)
		}
	}
}

func appendTenantTwice(s *store) {
	a := newAuthor(alpha)
	results := s.appendBatch(a.nextBatch(1), a.draft(1))
	wantError(s.T, results[0], nil)
	wantRefused(s.T, results[1])
	if got := s.headOrZero(alpha); got != a.head {
		s.Errorf("got head %+v, want %+v", got, a.head)
	}
}

func appendContradictions(s *store) {
	a := newAuthor(alpha)
	s.mustAppend(a.nextBatch(2))
	tests := []struct {
		fault  string
		mutate func(*storage.Batch)
	}{
		{"head without a root", func(b *storage.Batch) { b.Head.Root = id.Hash{} }},
		{"size beyond the events", func(b *storage.Batch) { b.Head.Size++ }},
		{"hole between events", func(b *storage.Batch) { b.Events[1].Index++ }},
		{"first index taken", func(b *storage.Batch) { b.Events[0].Index-- }},
		{"event without an id", func(b *storage.Batch) { b.Events[0].ID = "" }},
		{"short tile", func(b *storage.Batch) { b.Tiles[0].Hashes = b.Tiles[0].Hashes[1:] }},
		{"kind with a zero byte", func(b *storage.Batch) { b.Changes[0].Kind = "a\x00b" }},
		{"no kind", func(b *storage.Batch) { b.Changes[0].Kind = "" }},
	}
	for _, test := range tests {
		b := full(a, 2)
		test.mutate(&b)
		s.Log(test.fault)
		wantRefused(s.T, s.appendBatch(b)[0])
	}
	if got := s.headOrZero(alpha); got != a.head {
		s.Errorf("got head %+v, want %+v", got, a.head)
	}
}

func appendPipelined(s *store) {
	a, b := newAuthor(alpha), newAuthor(beta)
	var pending []storage.Pending
	for range 50 {
		pending = append(pending, s.Append([]storage.Batch{a.nextBatch(2), b.nextBatch(1)}))
	}
	for i := len(pending) - 1; i >= 0; i-- {
		for _, err := range pending[i].Wait() {
			wantError(s.T, err, nil)
		}
	}
	s.reopenStore()
	if got, want := s.headOrZero(alpha), a.head; got != want {
		s.Errorf("got head %+v, want %+v", got, want)
	}
	if got, want := s.headOrZero(beta), b.head; got != want {
		s.Errorf("got head %+v, want %+v", got, want)
	}
}

func appendKeepsNothing(s *store) {
	want, got := full(newAuthor(alpha), 2), full(newAuthor(alpha), 2)
	model := NewModel()
	model.Append([]storage.Batch{want}).Wait()
	s.mustAppend(got)
	for _, b := range [][]byte{got.Events[0].Record, got.Events[0].Envelope, got.Tiles[0].Hashes, got.Changes[0].Value} {
		copy(b, strings.Repeat("x", len(b)))
	}
	probeFor(want).sameContents(s.T, s, model, alpha)
}

// appendStreams checks that a tenant stays in its stream. It waits for the appends of each stream in order, and for the
// streams in any order.
func appendStreams(s *store) {
	const tenants, rounds = 8, 5
	authors := make([]*author, tenants)
	waiting := map[int][]storage.Pending{}
	streamOf := map[id.Tenant]int{}
	for i := range authors {
		authors[i] = newAuthor(id.Tenant(i + 1))
		streamOf[authors[i].tenant] = s.Stream(authors[i].tenant)
	}
	for range rounds {
		batches := map[int][]storage.Batch{}
		for _, a := range authors {
			n := s.Stream(a.tenant)
			if n != streamOf[a.tenant] || n < 0 {
				s.Errorf("tenant %d: got stream %d, want %d", a.tenant, n, streamOf[a.tenant])
			}
			batches[n] = append(batches[n], a.nextBatch(1))
		}
		for n := range batches {
			waiting[n] = append(waiting[n], s.Append(batches[n]))
		}
	}
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(waiting))) {
		for _, p := range waiting[n] {
			for _, err := range p.Wait() {
				wantError(s.T, err, nil)
			}
		}
	}
	s.reopenStore()
	for _, a := range authors {
		if got := s.headOrZero(a.tenant); got != a.head {
			s.Errorf("tenant %d: got head %+v, want %+v", a.tenant, got, a.head)
		}
	}
}
