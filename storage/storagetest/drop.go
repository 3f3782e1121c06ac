package storagetest

import (
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// marked creates a ledger with 300 events, some with keys, and a few records.
func marked(s *store, t id.Tenant) storage.Batch {
	b, _ := keyed(newAuthor(t), 300)
	for n := range 3 {
		b.Changes = append(b.Changes, storage.Change{Kind: "thing", Key: fmt.Sprint(n), Value: []byte("v")})
	}
	b.Changes = append(b.Changes, storage.Change{Kind: "mark", Value: []byte("m"), Version: 7})
	s.mustAppend(b)
	return b
}

// gone checks that nothing of a tenant exists.
func gone(s *store, t id.Tenant, was storage.Batch) {
	_, err := s.Head(s.Context(), t)
	wantError(s.T, err, storage.ErrNotFound)
	wantError(s.T, firstError(s.Events(s.Context(), t, 0, 1, 0)), storage.ErrNotFound)
	for r, err := range s.Partition(s.Context(), t) {
		s.Errorf("got record %v, %v", r, err)
	}
	for i := range was.Events {
		for n := range was.Events[i].DedupKeys {
			if got := lookup(s.T, s, t, n); got[0] != storage.NoIndex {
				s.Fatalf("%+v: got %d", n, got[0])
			}
		}
	}
	_, err = s.TileRoots(s.Context(), t, 0, 0, 1)
	wantError(s.T, err, storage.ErrNotFound)
	for _, c := range was.Counters {
		if got, err := s.Counters(s.Context(), t, []string{c.Name}); err != nil || got[0] != 0 {
			s.Errorf("counter %s: got %v, %v", c.Name, got, err)
		}
	}
	for other, err := range s.Tenants(s.Context()) {
		if other == t || err != nil {
			s.Errorf("listed: %d, %v", other, err)
		}
	}
}

var mark = storage.Record{Kind: "mark", Version: 7}

func dropAll(s *store) {
	was, kept := marked(s, alpha), marked(s, beta)
	if err := s.Drop(s.Context(), alpha, mark); err != nil {
		s.Fatal(err)
	}
	for range 2 {
		gone(s, alpha, was)
		if got := keys(s.T, s, beta, 0, kept.Head.Size); len(got) != 100 {
			s.Errorf("the other tenant has %d keys", len(got))
		}
		if head, err := s.Head(s.Context(), beta); err != nil || head != kept.Head {
			s.Errorf("the other tenant: got %+v, %v", head, err)
		}
		s.reopenStore()
	}
	wantError(s.T, s.Drop(s.Context(), alpha, mark), storage.ErrStale)
}

// dropAgain checks that dropped data can be stored again under the same names.
func dropAgain(s *store) {
	for range 3 {
		was := marked(s, alpha)
		if got := lookup(s.T, s, alpha, storage.DedupKey{Text: string(was.Events[17].ID)}); got[0] != 17 {
			s.Errorf("got %v", got)
		}
		if err := s.Drop(s.Context(), alpha, mark); err != nil {
			s.Fatal(err)
		}
	}
}

// dropConditions checks that nothing is dropped unless the record has the given version.
func dropConditions(s *store) {
	was := marked(s, alpha)
	for _, other := range []storage.Record{{Kind: "mark", Version: 6}, {Kind: "mark", Key: "x", Version: 7}, {Kind: "other", Version: 1}} {
		wantError(s.T, s.Drop(s.Context(), alpha, other), storage.ErrStale)
	}
	wantError(s.T, s.Drop(s.Context(), beta, mark), storage.ErrStale)
	for t, m := range map[id.Tenant]storage.Record{id.Service: mark, alpha: {Kind: "mark"}} {
		if err := s.Drop(s.Context(), t, m); err == nil {
			s.Errorf("tenant %d, record %+v: dropped", t, m)
		}
	}
	if head, err := s.Head(s.Context(), alpha); err != nil || head != was.Head {
		s.Errorf("got %+v, %v", head, err)
	}
}
