package storagetest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// contents is the state of one tenant, as far as the contract shows it.
type contents struct {
	Head     storage.Head
	Events   []storage.Event
	Some     []storage.Event // scattered events
	Indices  []id.Index
	Tiles    []storage.Tile
	Counters []uint64
	Records  []storage.Record
	Keys     []storage.IndexedKey // by index
	All      []storage.Record
}

// probe contains what to read in addition to head and events.
type probe struct {
	names    []storage.DedupKey
	tiles    []storage.Tile // level and index
	counters []string
	kinds    []storage.Kind
}

// probeFor returns a probe for everything in the batches.
func probeFor(batches ...storage.Batch) (p probe) {
	for i := range batches {
		b := &batches[i]
		for j := range b.Events {
			p.names = append(p.names, namesOf(&b.Events[j])...)
		}
		for _, tile := range b.Tiles {
			p.tiles = append(p.tiles, storage.Tile{Level: tile.Level, Index: tile.Index})
		}
		for _, c := range b.Counters {
			p.counters = append(p.counters, c.Name)
		}
		for _, c := range b.Changes {
			p.kinds = append(p.kinds, c.Kind)
		}
	}
	return p
}

// mergeProbe adds everything that next contains.
func (p *probe) mergeProbe(next probe) {
	p.names, p.tiles = append(p.names, next.names...), append(p.tiles, next.tiles...)
	p.counters, p.kinds = next.counters, next.kinds
}

// read returns the contents of tenant. A missing tile has no hashes.
func (p probe) read(t *testing.T, e Engine, tenant id.Tenant) (c contents) {
	t.Helper()
	var err error
	if c.Head, err = e.Head(t.Context(), tenant); err == nil {
		c.Events = collect(t, e.Events(t.Context(), tenant, 0, storage.NoIndex, storage.FieldRecord|storage.FieldEnvelope))
		c.Some = c.someEvents(t, e, tenant)
		c.Keys = keys(t, e, tenant, 0, storage.NoIndex)
	} else if !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("head: %v", err)
	}
	c.Indices = lookup(t, e, tenant, p.names...)
	for _, tile := range p.tiles {
		c.Tiles = append(c.Tiles, readTile(t, e, tenant, tile.Level, tile.Index))
	}
	c.Counters = counters(t, e, tenant, p.counters...)
	for _, kind := range p.kinds {
		c.Records = append(c.Records, scan(t, e, tenant, kind, "", "", 1<<20)...)
	}
	c.All = collect(t, e.Partition(t.Context(), tenant))
	return c
}

// someEvents reads every third event.
func (c *contents) someEvents(t *testing.T, e Engine, tenant id.Tenant) []storage.Event {
	t.Helper()
	var at []id.Index
	for i := 0; i < len(c.Events)+6; i += 3 {
		at = append(at, id.Index(i))
	}
	found, err := e.EventsAt(t.Context(), tenant, at, storage.FieldRecord|storage.FieldEnvelope)
	if err != nil {
		t.Fatalf("events at %v: %v", at, err)
	}
	return found
}

// keys returns the idempotency keys of the events [begin, end), sorted by index.
func keys(t *testing.T, e Engine, tenant id.Tenant, begin, end id.Index) []storage.IndexedKey {
	t.Helper()
	all := collect(t, e.IdempotencyKeys(t.Context(), tenant, begin, end))
	slices.SortFunc(all, func(a, b storage.IndexedKey) int { return cmp.Compare(a.Index, b.Index) })
	return all
}

// sameContents compares the contents of the tenants in two engines.
func (p probe) sameContents(t *testing.T, got, want Engine, tenants ...id.Tenant) {
	t.Helper()
	for _, tenant := range tenants {
		g, w := p.read(t, got, tenant), p.read(t, want, tenant)
		if !reflect.DeepEqual(g, w) {
			t.Fatalf("tenant %d: got\n%+v\nwant\n%+v", tenant, g, w)
		}
	}
}

func readTile(t *testing.T, e Engine, tenant id.Tenant, level uint8, index uint64) storage.Tile {
	t.Helper()
	tile := storage.Tile{Level: level, Index: index}
	hashes, err := e.TileHashes(t.Context(), tenant, level, index, 0, 256)
	roots, rootErr := e.TileRoots(t.Context(), tenant, level, index, index+1)
	if errors.Is(err, storage.ErrNotFound) && errors.Is(rootErr, storage.ErrNotFound) {
		return tile
	}
	if err != nil || rootErr != nil || len(hashes) != storage.TileSize || len(roots) != 1 {
		t.Fatalf("tile %d/%d: got %d bytes, %d roots, errors %v, %v", level, index, len(hashes), len(roots), err, rootErr)
	}
	tile.Hashes, tile.Root = hashes, roots[0]
	return tile
}

func lookup(t *testing.T, e Engine, tenant id.Tenant, names ...storage.DedupKey) []id.Index {
	t.Helper()
	found, err := e.Lookup(t.Context(), tenant, names)
	if err != nil || len(found) != len(names) {
		t.Fatalf("lookup: got %d indices of %d names, error %v", len(found), len(names), err)
	}
	return append([]id.Index(nil), found...)
}

func counters(t *testing.T, e Engine, tenant id.Tenant, names ...string) []uint64 {
	t.Helper()
	values, err := e.Counters(t.Context(), tenant, names)
	if err != nil || len(values) != len(names) {
		t.Fatalf("counters: got %d values of %d names, error %v", len(values), len(names), err)
	}
	return append([]uint64(nil), values...)
}

func scan(t *testing.T, e Engine, tenant id.Tenant, kind storage.Kind, begin, end string, limit int) []storage.Record {
	t.Helper()
	found, err := e.Scan(t.Context(), tenant, kind, begin, end, limit)
	if err != nil {
		t.Fatalf("scan %s: %v", kind, err)
	}
	return found
}

// collect returns all values of a sequence, which must not fail.
func collect[V any](t *testing.T, seq iter.Seq2[V, error]) (all []V) {
	t.Helper()
	for v, err := range seq {
		if err != nil {
			t.Fatalf("sequence: after %d: %v", len(all), err)
		}
		all = append(all, v)
	}
	return all
}

// wantError checks one result of an append or write.
func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("got error %v, want %v", got, want)
	}
}

// wantItem checks that a result is an ItemError with the given item and cause.
func wantItem(t *testing.T, got, want error, item int) {
	t.Helper()
	var named *storage.ItemError
	if !errors.As(got, &named) || !errors.Is(got, want) || named.Item != item {
		t.Errorf("got error %v, want item %d: %v", got, item, want)
	}
}

// wantRefused checks that a result is an ordinary error, none of the contract's errors.
func wantRefused(t *testing.T, got error) {
	t.Helper()
	kinds := []error{
		storage.ErrConflict, storage.ErrDuplicate, storage.ErrStale,
		storage.ErrUnknown, storage.ErrUnavailable, storage.ErrBroken, context.Canceled,
	}
	for _, kind := range kinds {
		if got == nil || errors.Is(got, kind) {
			t.Errorf("got %v, want a plain error", got)
			return
		}
	}
}
