package storagetest

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Head implements storage.Ledgers.
func (m *Model) Head(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if err := m.beginCall(ctx); err != nil {
		return storage.Head{}, err
	}
	defer m.mu.Unlock()
	if m.applied.ledgers[t] == nil {
		return storage.Head{}, fmt.Errorf("read head: %w", storage.ErrNotFound)
	}
	return m.applied.head(t), nil
}

// Events implements storage.Ledgers.
func (m *Model) Events(ctx context.Context, t id.Tenant, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error] {
	return func(yield func(storage.Event, error) bool) {
		for i := begin; ; i++ {
			e, more, err := m.readEvent(ctx, t, i, end, parts)
			if err != nil {
				yield(storage.Event{}, err)
				return
			}
			if !more || !yield(e, nil) {
				return
			}
		}
	}
}

// readEvent returns event i, or false if i is at the end.
func (m *Model) readEvent(ctx context.Context, t id.Tenant, i, end id.Index, parts storage.Fields) (storage.Event, bool, error) {
	if err := m.beginCall(ctx); err != nil {
		return storage.Event{}, false, err
	}
	defer m.mu.Unlock()
	l := m.applied.ledgers[t]
	if l == nil {
		return storage.Event{}, false, fmt.Errorf("read events: %w", storage.ErrNotFound)
	}
	if i >= min(end, id.Index(len(l.events))) {
		return storage.Event{}, false, nil
	}
	return CloneEvent(l.events[i], parts), true, nil
}

// EventsAt implements storage.Ledgers.
func (m *Model) EventsAt(
	ctx context.Context, t id.Tenant, at []id.Index, parts storage.Fields,
) (found []storage.Event, err error) {
	for _, i := range at {
		e, there, err := m.readEvent(ctx, t, i, i+1, parts)
		if err != nil {
			return nil, err
		}
		if there {
			found = append(found, e)
		}
	}
	return found, nil
}

// Entries implements storage.Ledgers.
func (m *Model) Entries(ctx context.Context, places []storage.Position) []storage.EntryResult {
	found := make([]storage.EntryResult, len(places))
	for i, p := range places {
		e, there, err := m.readEvent(ctx, p.Tenant, p.Index, p.Index+1, 0)
		if err == nil && !there {
			err = fmt.Errorf("read entry: %w", storage.ErrNotFound)
		}
		found[i] = storage.EntryResult{Entry: e.Entry, Err: err}
	}
	return found
}

// Lookup implements storage.Ledgers.
func (m *Model) Lookup(ctx context.Context, t id.Tenant, names []storage.DedupKey) ([]id.Index, error) {
	if err := m.beginCall(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	found := make([]id.Index, len(names))
	for i, n := range names {
		found[i] = m.applied.index(t, n)
	}
	return found, nil
}

// TileHashes implements storage.Ledgers.
func (m *Model) TileHashes(ctx context.Context, t id.Tenant, level uint8, index uint64, begin, end int) ([]byte, error) {
	if err := m.beginCall(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	tile, err := m.readTile(t, level, index)
	if err != nil {
		return nil, err
	}
	return slices.Clone(tile.Hashes[begin*len(id.Hash{}) : end*len(id.Hash{})]), nil
}

// TileRoots implements storage.Ledgers.
func (m *Model) TileRoots(ctx context.Context, t id.Tenant, level uint8, begin, end uint64) ([]id.Hash, error) {
	if err := m.beginCall(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var roots []id.Hash
	for index := begin; index < end; index++ {
		tile, err := m.readTile(t, level, index)
		if err != nil {
			return nil, err
		}
		roots = append(roots, tile.Root)
	}
	return roots, nil
}

func (m *Model) readTile(t id.Tenant, level uint8, index uint64) (storage.Tile, error) {
	if l := m.applied.ledgers[t]; l != nil {
		if tile, ok := l.tiles[tileName{level, index}]; ok {
			return tile, nil
		}
	}
	return storage.Tile{}, fmt.Errorf("read tile %d/%d: %w", level, index, storage.ErrNotFound)
}

// Counters implements storage.Ledgers.
func (m *Model) Counters(ctx context.Context, t id.Tenant, names []string) ([]uint64, error) {
	if err := m.beginCall(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	values := make([]uint64, len(names))
	if l := m.applied.ledgers[t]; l != nil {
		for i, name := range names {
			values[i] = l.counters[name]
		}
	}
	return values, nil
}

// Tenants implements storage.Ledgers.
func (m *Model) Tenants(ctx context.Context) iter.Seq2[id.Tenant, error] {
	return func(yield func(id.Tenant, error) bool) {
		if err := m.beginCall(ctx); err != nil {
			yield(0, err)
			return
		}
		var all []id.Tenant
		for t := range m.applied.ledgers {
			all = append(all, t)
		}
		m.mu.Unlock()
		slices.Sort(all)
		for _, t := range all {
			if !yield(t, nil) {
				return
			}
		}
	}
}
