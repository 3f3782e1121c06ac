package storagetest

import "github.com/agentledger/agentledger/storage"

// duplicateStore has one ledger of three events, the middle one with a key.
func duplicateStore(s *store) *author {
	a := newAuthor(alpha)
	b := a.next(3)
	b.Events[1].IdempotencyKey = "key"
	s.mustAppend(b)
	return a
}

func duplicateEventID(s *store) {
	a := duplicateStore(s)
	for _, reopened := range []bool{false, true} {
		if reopened {
			s.reopen()
		}
		b := a.draft(3)
		b.Events[1].ID = "event-2"
		wantItem(s.T, s.append(b)[0], storage.ErrDuplicate, 101)
	}
	s.mustAppend(a.next(1))
}

func duplicateIdempotencyKey(s *store) {
	a := duplicateStore(s)
	for _, reopened := range []bool{false, true} {
		if reopened {
			s.reopen()
		}
		b := a.draft(3)
		b.Events[2].IdempotencyKey = "key"
		wantItem(s.T, s.append(b)[0], storage.ErrDuplicate, 102)
	}
	s.mustAppend(a.next(1))
}

func duplicateInside(s *store) {
	a := duplicateStore(s)
	b := a.draft(3)
	b.Events[2].ID = b.Events[0].ID
	wantItem(s.T, s.append(b)[0], storage.ErrDuplicate, 102)
	b = a.draft(3)
	b.Events[0].IdempotencyKey, b.Events[1].IdempotencyKey = "new", "new"
	wantItem(s.T, s.append(b)[0], storage.ErrDuplicate, 101)
	if got := s.headOrZero(alpha); got != a.head {
		s.Errorf("got head %+v, want %+v", got, a.head)
	}
}

func duplicateNamespaces(s *store) {
	a := duplicateStore(s)
	b := a.next(2)
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
