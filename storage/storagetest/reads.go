package storagetest

import (
	"bytes"
	"context"
	"errors"
	"math"
	"reflect"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

const everything = storage.FieldRecord | storage.FieldEnvelope

// stored returns events as a store returns them.
func stored(events []storage.Event, parts storage.Fields) (shown []storage.Event) {
	for _, e := range events {
		e.IdempotencyKey, e.KeyDigest, e.Item, e.Erases = "", storage.KeyDigest{}, 0, nil
		shown = append(shown, CloneEvent(e, parts))
	}
	return shown
}

func (s *store) wantEvents(begin, end id.Index, parts storage.Fields, want []storage.Event) {
	s.Helper()
	got := collect(s.T, s.Events(s.Context(), alpha, begin, end, parts))
	if want = stored(want, parts); !reflect.DeepEqual(got, want) {
		s.Errorf("events [%d, %d), parts %b: got\n%+v\nwant\n%+v", begin, end, parts, got, want)
	}
	for _, apart := range []id.Index{1, 2, 13, 40} { // every event of the range, every second one, and so on
		var at []id.Index
		var wanted []storage.Event
		for i := begin; i < min(end, begin+400); i += apart {
			if at = append(at, i); i-begin < id.Index(len(want)) {
				wanted = append(wanted, want[i-begin])
			}
		}
		got, err := s.EventsAt(s.Context(), alpha, at, parts)
		if err != nil || len(got)+len(wanted) > 0 && !reflect.DeepEqual(got, wanted) {
			s.Errorf("events at %v, parts %b: got\n%+v, %v\nwant\n%+v", at, parts, got, err, wanted)
		}
	}
}

func readNoLedger(s *store) {
	s.mustAppend(newAuthor(beta).nextBatch(1))
	if err := s.Write(s.Context(), alpha, []storage.Change{putChange("agent", "a", "value", 0)}); err != nil {
		s.Fatalf("write: %v", err)
	}
	_, err := s.Head(s.Context(), alpha)
	wantError(s.T, err, storage.ErrNotFound)
	for _, err := range s.Events(s.Context(), alpha, 0, 1, 0) {
		wantError(s.T, err, storage.ErrNotFound)
	}
	_, err = s.EventsAt(s.Context(), alpha, []id.Index{0}, 0)
	wantError(s.T, err, storage.ErrNotFound)
	if got := lookup(s.T, s, alpha, storage.DedupKey{Text: "event-0"}); got[0] != storage.NoIndex {
		s.Errorf("got index %d, want none", got[0])
	}
	if got := counters(s.T, s, alpha, "events"); got[0] != 0 {
		s.Errorf("got counter %d, want 0", got[0])
	}
}

func readEventRanges(s *store) {
	a := newAuthor(alpha)
	first, second := a.nextBatch(300), a.nextBatch(7)
	s.mustAppend(first)
	s.mustAppend(second)
	s.mustAppend(newAuthor(beta).nextBatch(400))
	all := append(first.Events, second.Events...)
	for _, r := range [][2]id.Index{{0, 0}, {0, 1}, {0, 307}, {255, 257}, {299, 302}, {306, 307}, {300, math.MaxUint64}} {
		s.wantEvents(r[0], r[1], everything, all[r[0]:min(r[1], 307)])
	}
	for _, r := range [][2]id.Index{{307, 308}, {5, 4}, {5, 5}, {math.MaxUint64, math.MaxUint64}} {
		s.wantEvents(r[0], r[1], everything, nil)
	}
}

func readEventParts(s *store) {
	b := newAuthor(alpha).nextBatch(5)
	s.mustAppend(b)
	for _, parts := range []storage.Fields{0, storage.FieldRecord, storage.FieldEnvelope, everything, storage.FieldColumns} {
		s.wantEvents(1, 4, parts, b.Events[1:4])
	}
}

func readEntries(s *store) {
	red, blue := newAuthor(alpha).nextBatch(3), newAuthor(beta).nextBatch(2)
	s.mustAppend(red)
	s.mustAppend(blue)
	if got := s.Entries(s.Context(), nil); len(got) != 0 {
		s.Errorf("no places: got %+v", got)
	}
	const nobody id.Tenant = 999
	got := s.Entries(s.Context(), []storage.Position{
		{Tenant: beta, Index: 1}, {Tenant: alpha, Index: 3}, {Tenant: alpha, Index: 0}, {Tenant: nobody, Index: 0},
		{Tenant: beta, Index: 0}, {Tenant: alpha, Index: 2}, {Tenant: beta, Index: 1}, {Tenant: alpha, Index: storage.NoIndex},
	})
	events := []*storage.Event{&blue.Events[1], nil, &red.Events[0], nil, &blue.Events[0], &red.Events[2], &blue.Events[1], nil}
	if len(got) != len(events) {
		s.Fatalf("got %d results, want %d", len(got), len(events))
	}
	for i, e := range events {
		switch {
		case e == nil && !errors.Is(got[i].Err, storage.ErrNotFound):
			s.Errorf("place %d: got %+v, want %v", i, got[i], storage.ErrNotFound)
		case e != nil && (got[i].Err != nil || got[i].Entry != e.Entry):
			s.Errorf("place %d: got %+v, want %+v", i, got[i], e.Entry)
		}
	}
}

func readLeaveEarly(s *store) {
	b := newAuthor(alpha).nextBatch(5)
	s.mustAppend(b)
	for e, err := range s.Events(s.Context(), alpha, 1, 5, 0) {
		if err != nil || e.Index != 1 {
			s.Errorf("got event %d, %v, want 1", e.Index, err)
		}
		break
	}
	for tenant, err := range s.Tenants(s.Context()) {
		if err != nil || tenant != alpha {
			s.Errorf("got tenant %d, %v, want %d", tenant, err, alpha)
		}
		break
	}
}

func readOwnSlices(s *store) {
	a := newAuthor(alpha)
	b := full(a, 3)
	s.mustAppend(b)
	for range 2 {
		c := probeFor(b).read(s.T, s, alpha)
		for i := range c.Events {
			clear(c.Events[i].Record)
			clear(c.Events[i].Envelope)
		}
		clear(c.Tiles[0].Hashes)
		clear(c.Records[0].Value)
	}
	want := NewModel()
	want.Append([]storage.Batch{b}).Wait()
	probeFor(b).sameContents(s.T, s, want, alpha)
}

func readLookup(s *store) {
	a := duplicateStore(s)
	s.mustAppend(a.nextBatch(1))
	got := lookup(s.T, s, alpha,
		storage.DedupKey{Text: "event-3"}, storage.DedupKey{Text: "event-9"}, storage.DedupKey{Text: "event-0"},
		storage.DedupKey{Idempotency: true, Text: "key"}, storage.DedupKey{Text: "key"},
		storage.DedupKey{Idempotency: true, Text: "event-0"}, storage.DedupKey{Text: ""}, storage.DedupKey{Text: "event-0"})
	want := []id.Index{3, storage.NoIndex, 0, 1, storage.NoIndex, storage.NoIndex, storage.NoIndex, 0}
	if !reflect.DeepEqual(got, want) {
		s.Errorf("got %v, want %v", got, want)
	}
}

func readTiles(s *store) {
	a := newAuthor(alpha)
	b := a.nextBatch(1)
	b.Tiles = []storage.Tile{a.makeTile(0, 0), a.makeTile(0, 1), a.makeTile(0, 255), a.makeTile(0, 256), a.makeTile(1, 0), a.makeTile(7, math.MaxUint64-1)}
	s.mustAppend(b)
	for _, want := range b.Tiles {
		if got := readTile(s.T, s, alpha, want.Level, want.Index); !reflect.DeepEqual(got, want) {
			s.Errorf("tile %d/%d: content differs", want.Level, want.Index)
		}
	}
	for _, r := range [][2]int{{0, 1}, {0, 8}, {248, 256}, {17, 19}, {0, 256}, {5, 5}} {
		got, err := s.TileHashes(s.Context(), alpha, 0, 256, r[0], r[1])
		if want := b.Tiles[3].Hashes[32*r[0] : 32*r[1]]; err != nil || !bytes.Equal(got, want) {
			s.Errorf("hashes %v of a tile: got %x, %v, want %x", r, got, err, want)
		}
	}
	for _, missing := range []storage.Tile{{Level: 0, Index: 2}, {Level: 1, Index: 1}, {Level: 2, Index: 0}} {
		_, err := s.TileHashes(s.Context(), alpha, missing.Level, missing.Index, 0, 8)
		wantError(s.T, err, storage.ErrNotFound)
	}
	_, err := s.TileHashes(s.Context(), beta, 0, 0, 0, 8)
	wantError(s.T, err, storage.ErrNotFound)
	roots, err := s.TileRoots(s.Context(), alpha, 0, 255, 257)
	if err != nil || !reflect.DeepEqual(roots, []id.Hash{b.Tiles[2].Root, b.Tiles[3].Root}) {
		s.Errorf("roots: got %v, error %v", roots, err)
	}
	if roots, err = s.TileRoots(s.Context(), alpha, 0, 5, 5); err != nil || len(roots) != 0 {
		s.Errorf("no roots: got %v, error %v", roots, err)
	}
	for _, r := range [][2]uint64{{0, 3}, {1, 256}, {254, 256}, {256, 258}, {2, 3}} {
		_, err := s.TileRoots(s.Context(), alpha, 0, r[0], r[1])
		wantError(s.T, err, storage.ErrNotFound)
	}
}

func readCounters(s *store) {
	a := newAuthor(alpha)
	b := a.nextBatch(1)
	b.Counters = []storage.Counter{{Name: "events/2026-01", Value: 5}, {Name: "events", Value: math.MaxUint64}, {Name: "", Value: 7}}
	s.mustAppend(b)
	b = a.nextBatch(1)
	b.Counters = []storage.Counter{{Name: "events/2026-01", Value: 3}}
	s.mustAppend(b)
	got := counters(s.T, s, alpha, "events", "none", "events/2026-01", "", "events/2026-0")
	if want := []uint64{math.MaxUint64, 0, 3, 7, 0}; !reflect.DeepEqual(got, want) {
		s.Errorf("got %v, want %v", got, want)
	}
}

func readTenants(s *store) {
	want := []id.Tenant{1, 2, 255, 256, 1 << 32, math.MaxInt64}
	for _, i := range []int{3, 0, 5, 2, 4, 1} {
		s.mustAppend(full(newAuthor(want[i]), 2))
	}
	for _, t := range []id.Tenant{id.Service, 3, math.MaxInt64 - 1} {
		if err := s.Write(s.Context(), t, []storage.Change{putChange("agent", "a", "value", 0)}); err != nil {
			s.Fatalf("write: %v", err)
		}
	}
	if got := collect(s.T, s.Tenants(s.Context())); !reflect.DeepEqual(got, want) {
		s.Errorf("got %v, want %v", got, want)
	}
}

func readCancelled(s *store) {
	s.mustAppend(newAuthor(alpha).nextBatch(3))
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	seen := 0
	for _, err := range s.Events(ctx, alpha, 0, 3, everything) {
		seen++
		cancel()
		if seen > 1 && !errors.Is(err, context.Canceled) {
			s.Errorf("got error %v, want %v", err, context.Canceled)
		}
	}
	if seen != 2 {
		s.Errorf("got %d events and errors, want 1 and 1", seen)
	}
	_, err := s.Head(ctx, alpha)
	wantError(s.T, err, context.Canceled)
	for _, f := range s.Entries(ctx, []storage.Position{{Tenant: alpha}, {Tenant: alpha, Index: 1}}) {
		wantError(s.T, f.Err, context.Canceled)
	}
}
