package storagetest

import "github.com/agentledger/agentledger/storage"

// duplicateStore creates a ledger of three events, the middle one with a key.
func duplicateStore(s *store) *author {
	a := newAuthor(alpha)
	b := a.nextBatch(3)
	b.Events[1].IdempotencyKey = "key"
	s.mustAppend(b)
	return a
}

func duplicateEventID(s *store) {
	a := duplicateStore(s)
	for _, reopened := range []bool{false, true} {
		if reopened {
			s.reopenStore()
		}
		b := a.draft(3)
		b.Events[1].ID = "event-2"
		wantItem(s.T, s.appendBatch(b)[0], storage.ErrDuplicate, 101)
	}
	s.mustAppend(a.nextBatch(1))
}

func duplicateIdempotencyKey(s *store) {
	a := duplicateStore(s)
	for _, reopened := range []bool{false, true} {
		if reopened {
			s.reopenStore()
		}
		b := a.draft(3)
		b.Events[2].IdempotencyKey = "key"
		wantItem(s.T, s.appendBatch(b)[0], storage.ErrDuplicate, 102)
	}
	s.mustAppend(a.nextBatch(1))
}

func duplicateInside(s *store) {
	a := duplicateStore(s)
	b := a.draft(3)
	b.Events[2].ID = b.Events[0].ID
	wantItem(s.T, s.appendBatch(b)[0], storage.ErrDuplicate, 102)
	b = a.draft(3)
	b.Events[0].IdempotencyKey, b.Events[1].IdempotencyKey = "new", "new"
	wantItem(s.T, s.appendBatch(b)[0], storage.ErrDuplicate, 101)
	if got := s.headOrZero(alpha); got != a.head {
		s.Errorf("got head %+v, want %+v", got, a.head)
	}
}

func duplicatePipelined(s *store) {
	a := duplicateStore(s)
	first, late := a.nextBatch(2), a.draft(2)
	late.Events[0].ID = first.Events[1].ID
	pending := []storage.Pending{s.Append([]storage.Batch{first}), s.Append([]storage.Batch{late})}
	wantError(s.T, pending[0].Wait()[0], nil)
	wantItem(s.T, pending[1].Wait()[0], storage.ErrDuplicate, 100)
	s.mustAppend(a.nextBatch(1))
}

// duplicateBeforeStale checks that events are checked in order before changes.
func duplicateBeforeStale(s *store) {
	a := duplicateStore(s)
	b := a.draft(3)
	b.Events[1].ID, b.Events[2].ID = "event-0", "event-1"
	b.Changes = []storage.Change{{Kind: "agent", Key: "a", Value: []byte("x"), If: 3, Item: 7}}
	wantItem(s.T, s.appendBatch(b)[0], storage.ErrDuplicate, 101)
	b.Events[1].ID = "new"
	wantItem(s.T, s.appendBatch(b)[0], storage.ErrDuplicate, 102)
	b.Events[2].ID = "newer"
	wantItem(s.T, s.appendBatch(b)[0], storage.ErrStale, 7)
	b.Changes[0].If = 0
	s.mustAppend(b)
}

// duplicateLookedUp checks that a name may be stored after a lookup did not find it.
func duplicateLookedUp(s *store) {
	a := duplicateStore(s)
	names := []storage.DedupKey{{Text: "event-3"}, {Text: "never"}, {Idempotency: true, Text: "late"}}
	for i, at := range lookup(s.T, s, alpha, names...) {
		if at != storage.NoIndex {
			s.Errorf("name %d: got index %d, want none", i, at)
		}
	}
	b := a.nextBatch(1)
	b.Events[0].IdempotencyKey = "late"
	s.mustAppend(b)
	again := a.draft(1)
	again.Events[0].ID = "event-3"
	wantItem(s.T, s.appendBatch(again)[0], storage.ErrDuplicate, 100)
	again.Events[0].ID, again.Events[0].IdempotencyKey = "new", "late"
	wantItem(s.T, s.appendBatch(again)[0], storage.ErrDuplicate, 100)
	again.Events[0].IdempotencyKey = ""
	s.mustAppend(again)
}

func duplicateNamespaces(s *store) {
	a := duplicateStore(s)
	b := a.nextBatch(2)
	b.Events[0].ID = "key"
	b.Events[1].IdempotencyKey = "event-0"
	s.mustAppend(b)
}

func duplicateOtherTenant(s *store) {
	duplicateStore(s)
	b := newAuthor(beta).draft(2)
	b.Events[0].IdempotencyKey = "key"
	s.mustAppend(b)
}
