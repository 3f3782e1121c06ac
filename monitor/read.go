package monitor

import (
	"bytes"
	"context"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// chunk is one entry bundle that was fetched and checked on its own.
type chunk struct {
	bundle tlog.Bundle
	prev   id.Hash   // prev value of the first entry
	hashes []id.Hash // leaf hashes, equal to those in the tile
	parsed []event.Entry
	err    error
}

// readEntries extends the tree of s to the size of a head. It checks entries, chain, numbers, every
// new tile, and finally the root. On the way it checks the roots of listed trees, which are larger
// than s and in ascending order.
func (m *Monitor) readEntries(ctx context.Context, s *state, to signedHead, listed []signedHead) error {
	r := &readRun{monitor: m, known: s.head.asEvidence(), to: to, tree: s.tree.Clone(), last: s.last, listed: listed}
	if err := r.readChunks(ctx); err != nil {
		return err
	}
	s.tree, s.last = r.tree, r.last
	return nil
}

// readRun is one run of readEntries.
type readRun struct {
	monitor *Monitor
	known   Evidence
	to      signedHead
	tree    *tlog.Builder
	last    id.Hash // event hash of the last entry, or the genesis value
	full    []tlog.FullTile
	listed  []signedHead // expected trees at larger sizes, ascending
}

func (r *readRun) readChunks(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	queue := r.fetchChunks(ctx)
	defer func() {
		cancel()
		for pending := range queue { // drain, until all fetches have ended
			<-pending
		}
	}()
	for pending := range queue {
		c := <-pending
		if c.err != nil {
			return c.err
		}
		if err := r.appendChunk(ctx, c); err != nil {
			return err
		}
		r.monitor.Progress(r.tree.Size(), r.to.Size)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := r.checkPartials(ctx); err != nil {
		return err
	}
	if r.tree.Size() != r.to.Size || r.tree.Root() != r.to.Root {
		return r.newTampering("the entries do not lead to the signed root", nil)
	}
	return nil
}

// fetchChunks fetches the bundles from the tree's size on, several concurrently. It returns them in
// order; at most Readers bundles are pending.
func (r *readRun) fetchChunks(ctx context.Context) <-chan chan chunk {
	queue := make(chan chan chunk, r.monitor.Readers-1)
	begin, size := uint64(r.tree.Size()), uint64(r.to.Size)
	go func() {
		defer close(queue)
		for first := begin / tlog.TileWidth * tlog.TileWidth; first < size && begin < size; first += tlog.TileWidth {
			pending := make(chan chunk, 1)
			select {
			case queue <- pending:
			case <-ctx.Done():
				return
			}
			b := tlog.Bundle{Index: first / tlog.TileWidth, Width: uint16(min(size-first, tlog.TileWidth))}
			go func() { pending <- r.fetchChunk(ctx, b) }()
		}
	}()
	return queue
}

// fetchChunk fetches a bundle and its tile. It makes all checks that do not need earlier entries.
func (r *readRun) fetchChunk(ctx context.Context, b tlog.Bundle) chunk {
	entries, err := r.monitor.Log.Entries(ctx, b, event.MaxEntryLen)
	if err != nil {
		return chunk{err: err}
	}
	name := tlog.Tile{Index: b.Index, Width: b.Width}
	tile, err := r.monitor.Log.Tile(ctx, name)
	if err != nil {
		return chunk{err: err}
	}
	c := chunk{bundle: b, hashes: make([]id.Hash, 0, len(entries)), parsed: make([]event.Entry, 0, len(entries))}
	for i, text := range entries {
		if what := c.checkEntry(text, id.Hash(tile[i*len(id.Hash{}):])); what != "" {
			content, _ := tlog.EntryBundle(entries...) // cannot fail: the entries come from a bundle
			what = fmt.Sprintf("entry %d: %s", b.Index*tlog.TileWidth+uint64(i), what)
			return chunk{err: r.newTampering(what, map[string][]byte{"entries": content, "tile": tile})}
		}
	}
	return c
}

// checkEntry checks an entry against its leaf hash in the tile, its number and the previous entry
// in the bundle. It returns the error as text.
func (c *chunk) checkEntry(text []byte, leaf id.Hash) (what string) {
	index := c.bundle.Index*tlog.TileWidth + uint64(len(c.hashes))
	hash := tlog.LeafHash(text)
	if hash != leaf {
		return "its leaf hash is not the one in the tile"
	}
	e, err := event.ParseEntry(text)
	if err != nil {
		return "not in the form of an entry"
	}
	if e.Seq != index+1 {
		return "its sequence number is not its place"
	}
	if len(c.hashes) == 0 {
		c.prev = e.Prev
	} else if e.Prev != c.hashes[len(c.hashes)-1] {
		return "it does not name the entry before it"
	}
	c.hashes, c.parsed = append(c.hashes, hash), append(c.parsed, e)
	return ""
}

// appendChunk adds a chunk to the tree.
func (r *readRun) appendChunk(ctx context.Context, c chunk) error {
	begin := c.bundle.Index * tlog.TileWidth
	had := int(uint64(r.tree.Size()) - begin)
	for i, h := range c.hashes[:had] {
		if !bytes.Equal(h[:], r.tree.Partial(0)[i*len(h):(i+1)*len(h)]) {
			return r.newTampering(fmt.Sprintf("entry %d: it is not the one that was read before", begin+uint64(i)), nil)
		}
	}
	if had == 0 && c.prev != r.last {
		return r.newTampering(fmt.Sprintf("entry %d: it does not name the entry before it", begin), nil)
	}
	if visit := r.monitor.visit; visit != nil {
		if err := visit(ctx, r.tree.Size(), c.parsed[had:]); err != nil {
			return err
		}
	}
	r.last = c.hashes[len(c.hashes)-1]
	for rest := c.hashes[had:]; len(rest) > 0; {
		n := id.Index(len(rest))
		if len(r.listed) > 0 {
			n = min(n, r.listed[0].Size-r.tree.Size())
		}
		if err := r.appendLeaves(ctx, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// appendLeaves adds leaves, at most up to the size of the next listed tree.
func (r *readRun) appendLeaves(ctx context.Context, leaves []id.Hash) error {
	r.full = r.tree.Append(r.full[:0], leaves...)
	for _, t := range r.full {
		if t.Level == 0 {
			continue // compared when fetched
		}
		if err := r.compareTile(ctx, tlog.Tile{Level: t.Level, Index: t.Index, Width: tlog.TileWidth},
			t.Hashes); err != nil {
			return err
		}
	}
	if len(r.listed) == 0 || r.listed[0].Size != r.tree.Size() {
		return nil
	}
	listed := r.listed[0]
	r.listed = r.listed[1:]
	if r.tree.Root() == listed.Root {
		return nil
	}
	if err := r.monitor.checkExtends(ctx, listed, r.to); err != nil {
		return err
	}
	return r.newTampering(fmt.Sprintf("the entries do not lead to the root that is listed at size %d", listed.Size),
		nil)
}

// checkPartials compares the partial tiles above level 0 of the final tree.
func (r *readRun) checkPartials(ctx context.Context) error {
	for _, t := range tlog.Partials(r.tree.Size()) {
		if t.Level == 0 {
			continue
		}
		if err := r.compareTile(ctx, t, r.tree.Partial(t.Level)); err != nil {
			return err
		}
	}
	return nil
}

// compareTile fetches a tile and compares it with the hashes computed from the entries.
func (r *readRun) compareTile(ctx context.Context, t tlog.Tile, want []byte) error {
	got, err := r.monitor.Log.Tile(ctx, t)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return r.newTampering(t.Path()+" is not what the entries give", map[string][]byte{"tile": got})
	}
	return nil
}

func (r *readRun) newTampering(what string, content map[string][]byte) error {
	return &Finding{Kind: Tampering, What: what, Known: r.known, Shown: r.to.asEvidence(), Content: content}
}
