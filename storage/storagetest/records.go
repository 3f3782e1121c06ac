package storagetest

import (
	"errors"
	"reflect"
	"strconv"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

func (s *store) mustWrite(t id.Tenant, changes ...storage.Change) {
	s.Helper()
	if err := s.Write(s.Context(), t, changes); err != nil {
		s.Fatalf("write: %v", err)
	}
}

// wantRecord checks one record of alpha. Version 0 means that it must be absent.
func (s *store) wantRecord(kind storage.Kind, key, value string, version uint64) {
	s.Helper()
	got, err := s.Get(s.Context(), alpha, kind, key)
	if version == 0 {
		wantError(s.T, err, storage.ErrNotFound)
		return
	}
	want := storage.Record{Kind: kind, Key: key, Value: []byte(value), Version: version}
	if err != nil || !reflect.DeepEqual(got, want) {
		s.Errorf("record %s %q: got %+v, %v, want %+v", kind, key, got, err, want)
	}
}

func remove(kind storage.Kind, key string, version uint64) storage.Change {
	return storage.Change{Kind: kind, Key: key, If: version}
}

func recordVersions(s *store) {
	s.wantRecord("agent", "a", "", 0)
	s.mustWrite(alpha, putChange("agent", "a", "one", 0))
	s.wantRecord("agent", "a", "one", 1)
	s.mustWrite(alpha, putChange("agent", "a", "two", 1))
	s.mustWrite(alpha, putChange("agent", "a", "three", storage.AnyVersion))
	s.reopenStore()
	s.wantRecord("agent", "a", "three", 3)
	s.mustWrite(alpha, remove("agent", "a", 3))
	s.wantRecord("agent", "a", "", 0)
	s.mustWrite(alpha, putChange("agent", "a", "again", 0))
	s.wantRecord("agent", "a", "again", 1)

	// A version never wraps: the record could not be read again.
	far := putChange("agent", "far", "x", 0)
	far.Version = storage.MaxVersion
	s.mustWrite(alpha, far)
	for _, c := range []storage.Change{
		putChange("agent", "far", "y", storage.MaxVersion), putChange("agent", "far", "y", storage.AnyVersion),
		{Kind: "agent", Key: "farther", Value: []byte("x"), Version: storage.MaxVersion + 1},
		{Kind: "agent", Key: "farther", Value: []byte("x"), Version: storage.AnyVersion},
	} {
		if err := s.Write(s.Context(), alpha, []storage.Change{c}); !errors.Is(err, storage.ErrCorrupt) {
			s.Errorf("%q from version %d with %d: got %v", c.Key, c.If, c.Version, err)
		}
	}
	s.wantRecord("agent", "far", "x", storage.MaxVersion)
	s.wantRecord("agent", "farther", "", 0)
}

func recordConditions(s *store) {
	s.mustWrite(alpha, putChange("agent", "there", "x", 0), putChange("agent", "gone", "x", 0), remove("agent", "gone", 1))
	stale := []storage.Change{
		putChange("agent", "there", "y", 0),
		putChange("agent", "there", "y", 2),
		putChange("agent", "missing", "y", 1),
		putChange("agent", "gone", "y", 1),
		remove("agent", "there", 0),
		remove("agent", "there", 2),
		remove("agent", "missing", 1),
	}
	for i, c := range stale {
		c.Item = i
		wantItem(s.T, s.Write(s.Context(), alpha, []storage.Change{c}), storage.ErrStale, i)
	}
	s.wantRecord("agent", "there", "x", 1)
	s.mustWrite(alpha, remove("agent", "missing", 0), remove("agent", "missing", storage.AnyVersion))
	s.mustWrite(alpha, putChange("agent", "missing", "z", storage.AnyVersion), remove("agent", "there", storage.AnyVersion))
	s.wantRecord("agent", "missing", "z", 1)
	s.wantRecord("agent", "there", "", 0)
}

func recordSetAtomic(s *store) {
	s.mustWrite(alpha, putChange("agent", "a", "1", 0))
	bad := putChange("key", "k", "new", 4)
	bad.Item = 9
	err := s.Write(s.Context(), alpha, []storage.Change{putChange("agent", "b", "new", 0), putChange("agent", "a", "new", 1), bad, remove("agent", "a", 2)})
	wantItem(s.T, err, storage.ErrStale, 9)
	s.reopenStore()
	s.wantRecord("agent", "a", "1", 1)
	s.wantRecord("agent", "b", "", 0)
	s.mustWrite(alpha)
}

func recordSetOrder(s *store) {
	s.mustWrite(alpha, putChange("agent", "a", "1", 0), putChange("agent", "a", "2", 1), putChange("agent", "a", "3", storage.AnyVersion))
	s.wantRecord("agent", "a", "3", 3)
	second := putChange("agent", "a", "5", 3)
	second.Item = 2
	wantItem(s.T, s.Write(s.Context(), alpha, []storage.Change{putChange("agent", "a", "4", 3), second}), storage.ErrStale, 2)
	s.wantRecord("agent", "a", "3", 3)
	s.mustWrite(alpha, remove("agent", "a", 3), putChange("agent", "a", "6", 0), putChange("agent", "b", "7", 0), remove("agent", "b", 1))
	s.wantRecord("agent", "a", "6", 1)
	s.wantRecord("agent", "b", "", 0)
}

func recordEmpty(s *store) {
	s.mustWrite(alpha, putChange("agent", "", "no key", 0), putChange("agent", "no value", "", 0))
	s.reopenStore()
	s.wantRecord("agent", "", "no key", 1)
	s.wantRecord("agent", "no value", "", 1)
	if got := len(scan(s.T, s, alpha, "agent", "", "", 10)); got != 2 {
		s.Errorf("got %d records, want 2", got)
	}
}

func recordKinds(s *store) {
	for _, kind := range []storage.Kind{"", "\x00", "a\x00b", "a\x00"} {
		wantRefused(s.T, s.Write(s.Context(), alpha, []storage.Change{putChange("good", "k", "v", 0), putChange(kind, "k", "v", 0)}))
	}
	s.wantRecord("good", "k", "", 0)
}

// keysOf scans alpha's records of a kind.
func (s *store) keysOf(kind storage.Kind, begin, end string, limit int) (keys []string) {
	s.Helper()
	for _, r := range scan(s.T, s, alpha, kind, begin, end, limit) {
		if r.Kind != kind || string(r.Value) != r.Key || r.Version != 1 {
			s.Errorf("got record %+v, want its key as value", r)
		}
		keys = append(keys, r.Key)
	}
	return keys
}

func recordScanRanges(s *store) {
	for _, key := range []string{"d", "a", "c", "b"} {
		s.mustWrite(alpha, putChange("agent", key, key, 0))
	}
	tests := []struct {
		begin, end string
		limit      int
		want       []string
	}{
		{"", "", 10, []string{"a", "b", "c", "d"}},
		{"b", "", 10, []string{"b", "c", "d"}},
		{"", "c", 10, []string{"a", "b"}},
		{"b", "c", 10, []string{"b"}},
		{"b", "b\x00", 10, []string{"b"}},
		{"aa", "ca", 10, []string{"b", "c"}},
		{"b", "b", 10, nil},
		{"c", "a", 10, nil},
		{"e", "", 10, nil},
		{"", "", 2, []string{"a", "b"}},
		{"b", "d", 1, []string{"b"}},
		{"", "", 0, nil},
		{"", "", -1, nil},
	}
	for _, test := range tests {
		if got := s.keysOf("agent", test.begin, test.end, test.limit); !reflect.DeepEqual(got, test.want) {
			s.Errorf("scan [%q, %q) limit %d: got %q, want %q", test.begin, test.end, test.limit, got, test.want)
		}
	}
}

func recordScanOrder(s *store) {
	want := []string{"", "\x00", "\x00\x00", "\x00\xff", "10", "9", "A", "a", "a\x00", "a\x00b", "aa", "é", "\xff", "\xff\xff"}
	for i := range want {
		key := want[(i*5)%len(want)]
		s.mustWrite(alpha, putChange("agent", key, key, 0))
	}
	s.reopenStore()
	if got := s.keysOf("agent", "", "", 100); !reflect.DeepEqual(got, want) {
		s.Errorf("got %q, want %q", got, want)
	}
	if got := s.keysOf("agent", "a\x00", "\xff\xff", 100); !reflect.DeepEqual(got, want[8:13]) {
		s.Errorf("got %q, want %q", got, want[8:13])
	}
}

func recordInAppend(s *store) {
	a := newAuthor(alpha)
	s.mustWrite(alpha, putChange("agent", "old", "x", 0), putChange("agent", "dead", "x", 0))
	b := a.nextBatch(1)
	b.Changes = []storage.Change{putChange("agent", "new", "n", 0), putChange("agent", "old", "y", 1), remove("agent", "dead", 1)}
	s.mustAppend(b)
	b = a.nextBatch(0)
	b.Changes = []storage.Change{putChange("agent", "new", "m", 1)}
	s.mustAppend(b)
	for range 2 {
		s.wantRecord("agent", "new", "m", 2)
		s.wantRecord("agent", "old", "y", 2)
		s.wantRecord("agent", "dead", "", 0)
		s.reopenStore()
	}
}

func recordStaleAppend(s *store) {
	a := newAuthor(alpha)
	b := a.draft(2)
	stale := putChange("agent", "a", "x", 1)
	stale.Item = 4
	b.Changes = []storage.Change{putChange("agent", "b", "x", 0), stale}
	wantItem(s.T, s.appendBatch(b)[0], storage.ErrStale, 4)
	s.reopenStore()
	probeFor(b).sameContents(s.T, s, NewModel(), alpha)
}

func recordContention(s *store) {
	const writers, rounds = 8, 15
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for won := 0; won < rounds; {
				version, count := uint64(0), 0
				r, err := s.Get(s.Context(), id.Service, "count", "n")
				if err == nil {
					version = r.Version
					count, _ = strconv.Atoi(string(r.Value))
				}
				err = s.Write(s.Context(), id.Service, []storage.Change{putChange("count", "n", strconv.Itoa(count+1), version)})
				if err == nil {
					won++
				} else if !errors.Is(err, storage.ErrStale) {
					s.Errorf("write: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
	r, err := s.Get(s.Context(), id.Service, "count", "n")
	if want := strconv.Itoa(writers * rounds); err != nil || string(r.Value) != want || r.Version != writers*rounds {
		s.Errorf("got %q version %d, %v, want %s", r.Value, r.Version, err, want)
	}
}
