package storagetest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// keyed returns a batch of n events, every third one with an idempotency key.
func keyed(a *author, n int) (b storage.Batch, want []storage.IndexedKey) {
	b = a.nextBatch(n)
	for i := range b.Events {
		e := &b.Events[i]
		if e.Index%3 == 0 {
			e.IdempotencyKey = fmt.Sprintf("key %d", e.Index)
			want = append(want, storage.IndexedKey{Digest: storage.DigestIdempotencyKey(e.IdempotencyKey), Index: e.Index})
		}
	}
	return b, want
}

func copyKeys(s *store) {
	a := newAuthor(alpha)
	first, want := keyed(a, 300)
	second, more := keyed(a, 17)
	other, _ := keyed(newAuthor(beta), 50)
	s.mustAppend(first)
	s.mustAppend(second)
	s.mustAppend(other)
	want = append(want, more...)
	for _, r := range [][2]id.Index{{0, 0}, {0, 1}, {0, 317}, {1, 3}, {2, 100}, {299, 301}, {300, math.MaxUint64}, {400, 500}} {
		var in []storage.IndexedKey
		for _, k := range want {
			if k.Index >= r[0] && k.Index < r[1] {
				in = append(in, k)
			}
		}
		if got := keys(s.T, s, alpha, r[0], r[1]); !reflect.DeepEqual(got, in) {
			s.Errorf("keys of [%d, %d): got %v, want %v", r[0], r[1], got, in)
		}
	}
	wantError(s.T, firstError(s.IdempotencyKeys(s.Context(), 3, 0, 1)), storage.ErrNotFound)
}

// copyDigests checks that an event that is stored with the digest of its key has that key.
func copyDigests(s *store) {
	a := newAuthor(alpha)
	b := a.nextBatch(2)
	b.Events[1].KeyDigest = storage.DigestIdempotencyKey("key")
	s.mustAppend(b)
	for _, n := range []storage.DedupKey{{Idempotency: true, Text: "key"}, {Idempotency: true, Digest: storage.DigestIdempotencyKey("key")}} {
		if got := lookup(s.T, s, alpha, n, storage.DedupKey{Idempotency: true, Text: "other"}); got[0] != 1 || got[1] != storage.NoIndex {
			s.Errorf("%+v: got %v", n, got)
		}
	}
	if got := keys(s.T, s, alpha, 0, 2); len(got) != 1 || got[0] != (storage.IndexedKey{Digest: storage.DigestIdempotencyKey("key"), Index: 1}) {
		s.Errorf("got keys %v", got)
	}
	for i := range 2 {
		b := a.draft(2)
		b.Events[1].IdempotencyKey, b.Events[1].KeyDigest = "key", storage.KeyDigest{}
		if i == 1 {
			b.Events[1].IdempotencyKey, b.Events[1].KeyDigest = "", storage.DigestIdempotencyKey("key")
		}
		wantItem(s.T, s.appendBatch(b)[0], storage.ErrDuplicate, 101)
	}
	b = a.draft(2)
	b.Events[0].IdempotencyKey, b.Events[1].KeyDigest = "new", storage.DigestIdempotencyKey("new")
	wantItem(s.T, s.appendBatch(b)[0], storage.ErrDuplicate, 101)
}

func copyPartition(s *store) {
	var want []storage.Record
	for _, kind := range []storage.Kind{"a", "a/", "aa", "a\x01", "b", "\xff"} {
		for i := range 130 {
			key := fmt.Sprintf("%03d", i)
			if i == 0 {
				key = ""
			}
			want = append(want, storage.Record{Kind: kind, Key: key, Value: []byte(key), Version: 1})
		}
	}
	for r := range slices.Chunk(want, 50) {
		var changes []storage.Change
		for i := range r {
			changes = append(changes, putChange(r[i].Kind, r[i].Key, string(r[i].Value), 0))
		}
		s.mustWrite(alpha, changes...)
	}
	s.mustWrite(beta, putChange("a", "other", "x", 0))
	s.mustWrite(id.Service, putChange("a", "other", "x", 0))
	slices.SortFunc(want, func(x, y storage.Record) int {
		if x.Kind == y.Kind {
			return strings.Compare(x.Key, y.Key)
		}
		return strings.Compare(string(x.Kind), string(y.Kind))
	})
	for range 2 {
		if got := collect(s.T, s.Partition(s.Context(), alpha)); !reflect.DeepEqual(got, want) {
			s.Errorf("got %d records, want %d in order", len(got), len(want))
		}
		s.reopenStore()
	}
	if got := collect(s.T, s.Partition(s.Context(), 3)); len(got) != 0 {
		s.Errorf("got %v of no tenant", got)
	}
	for range s.Partition(s.Context(), alpha) {
		break
	}
}

func copyVersions(s *store) {
	at := func(c storage.Change, version uint64) storage.Change {
		c.Version = version
		return c
	}
	s.mustWrite(alpha, at(putChange("agent", "a", "x", 0), 7), putChange("agent", "a", "y", 7), at(putChange("agent", "b", "x", 0), 3))
	s.wantRecord("agent", "a", "y", 8)
	s.mustWrite(alpha, at(putChange("agent", "b", "z", 3), 1))
	s.reopenStore()
	s.wantRecord("agent", "b", "z", 1)
	s.mustWrite(alpha, at(remove("agent", "b", 1), 5))
	s.wantRecord("agent", "b", "", 0)
}
