package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// ErrInconsistent is wrapped by the errors of reading a ledger whose stored parts contradict each other.
var ErrInconsistent = errors.New("stored ledger does not fit together")

// RestoreTree rebuilds the growing end of a ledger's tree from the tile roots and the last entries in the store. It
// returns an error that wraps ErrInconsistent if the tree does not have the head's root, or if the last entry is not the
// head's: a restored tree is never used unchecked.
func RestoreTree(ctx context.Context, store storage.Ledgers, t id.Tenant, head storage.Head) (*tlog.Builder, error) {
	partials := tlog.Partials(head.Size)
	hashes, err := allHashes(ctx, store, t, partials)
	if err != nil {
		return new(tlog.Builder), err
	}
	tree, err := tlog.NewBuilder(head.Size, hashes...)
	if err != nil {
		return new(tlog.Builder), err
	}
	if tree.Root() != head.Root {
		return tree, fmt.Errorf("%w: the tree's root is not the head's", ErrInconsistent)
	}
	last, err := lastEntry(ctx, store, t, head, partials, hashes)
	if err == nil && last != head.Last && head.Size > 0 {
		err = fmt.Errorf("%w: the last entry is not the head's", ErrInconsistent)
	}
	return tree, err
}

// RestoreTreeAt is RestoreTree for an earlier head of which only the size and the root are known. It returns the whole
// head as well.
func RestoreTreeAt(
	ctx context.Context, store storage.Ledgers, t id.Tenant, size id.Index, root id.Hash,
) (storage.Head, *tlog.Builder, error) {
	head := storage.Head{Size: size, Root: root}
	if size == 0 {
		return head, nil, ErrInconsistent
	}
	last, err := ReadEvent(ctx, store, t, size-1, storage.FieldColumns)
	if err != nil {
		return head, nil, err
	}
	head.Last, head.LastReceived = EntryOf(last).Hash(), last.ReceivedAt
	tree, err := RestoreTree(ctx, store, t, head)
	return head, tree, err
}

// allHashes returns the hashes of partial tiles. It reads them concurrently, because each read is a round trip to the
// store.
func allHashes(ctx context.Context, store storage.Ledgers, t id.Tenant, partials []tlog.Tile) ([][]id.Hash, error) {
	hashes, reads := make([][]id.Hash, len(partials)), make([]func() error, len(partials))
	for i, p := range partials {
		reads[i] = func() (err error) {
			hashes[i], err = partialHashes(ctx, store, t, p)
			return err
		}
	}
	return hashes, syncs.RunAll(reads...)
}

// partialHashes returns the hashes of a partial tile: leaf hashes of entries at
// level 0, roots of full tiles above it.
func partialHashes(ctx context.Context, store storage.Ledgers, t id.Tenant, p tlog.Tile) ([]id.Hash, error) {
	begin := p.Index * tlog.TileWidth
	end := begin + uint64(p.Width)
	if p.Level > 0 {
		return store.TileRoots(ctx, t, p.Level-1, begin, end)
	}
	hashes := make([]id.Hash, 0, p.Width)
	for e, err := range store.Events(ctx, t, id.Index(begin), id.Index(end), 0) {
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, EntryOf(e).Hash())
	}
	if len(hashes) != int(p.Width) {
		return nil, fmt.Errorf("%w: entries are missing", ErrInconsistent)
	}
	return hashes, nil
}

// lastEntry returns the leaf hash of the last entry, or the zero hash for an empty ledger. If a partial tile of level 0
// was read, it ends with this hash.
func lastEntry(ctx context.Context, store storage.Ledgers, t id.Tenant, head storage.Head, partials []tlog.Tile,
	hashes [][]id.Hash) (id.Hash, error) {
	if len(partials) > 0 && partials[0].Level == 0 {
		return hashes[0][len(hashes[0])-1], nil
	}
	if head.Size == 0 {
		return id.Hash{}, nil
	}
	last, err := ReadEvent(ctx, store, t, head.Size-1, 0)
	return EntryOf(last).Hash(), err
}

// ReadEvent reads one event from a store. It returns storage.ErrNotFound if the store does not have the event.
func ReadEvent(
	ctx context.Context, store storage.Ledgers, t id.Tenant, at id.Index, parts storage.Fields,
) (storage.Event, error) {
	for e, err := range store.Events(ctx, t, at, at+1, parts) {
		return e, err
	}
	return storage.Event{}, storage.ErrNotFound
}

// EntryOf returns the public entry of a stored event.
func EntryOf(e storage.Event) event.Entry {
	return event.Entry{Prev: e.Entry.Prev, Record: e.Entry.Record, Seq: e.Index.Sequence()}
}
