package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// randomOperations performs the same random operations on the store and on a model. It compares every result and, after
// every step, all contents.
func randomOperations(s *store) {
	for seed := range uint64(4) {
		r := newRandomRun(s, seed)
		for step := range 60 {
			r.step(step)
			r.compare()
		}
	}
}

// randomReopened is randomOperations on a store that is reopened after every step.
func randomReopened(s *store) {
	r := newRandomRun(s, 9)
	for step := range 20 {
		r.step(step)
		r.reopenStore()
		r.compare()
	}
}

func newRandomRun(s *store, seed uint64) *randomRun {
	r := &randomRun{store: s, random: rand.New(rand.NewPCG(seed, 2)), model: NewModel()}
	for _, t := range []id.Tenant{id.Tenant(seed*10 + 1), id.Tenant(seed*10 + 2), id.Tenant(seed*10 + 3)} {
		r.authors = append(r.authors, newAuthor(t))
	}
	return r
}

type randomRun struct {
	*store
	random  *rand.Rand
	model   *Model
	authors []*author
}

func (r *randomRun) step(step int) {
	switch n := r.random.IntN(20); {
	case n < 12:
		r.appendSome(step)
	case n < 18:
		r.writeSome(step)
	case n == 18:
		r.appendPipelined(step)
	default:
		r.reopenStore()
	}
}

// appendSome appends to some ledgers, usually with an error in one batch.
func (r *randomRun) appendSome(step int) {
	var batches []storage.Batch
	for _, a := range r.authors {
		if r.random.IntN(3) > 0 {
			batches = append(batches, r.batch(a, step))
		}
	}
	got, want := r.appendBatch(batches...), r.model.Append(batches).Wait()
	for i := range want {
		r.sameAnswer(step, got[i], want[i])
	}
}

// appendPipelined makes several appends before it waits for the first. Each append sees the state after the earlier
// ones, including those that were rejected.
func (r *randomRun) appendPipelined(step int) {
	var got, want []storage.Pending
	for range 3 {
		var batches []storage.Batch
		for _, a := range r.authors {
			batches = append(batches, r.batch(a, step))
		}
		got, want = append(got, r.Append(batches)), append(want, r.model.Append(batches))
	}
	for i := range got {
		g, w := got[i].Wait(), want[i].Wait()
		for j := range w {
			r.sameAnswer(step, g[j], w[j])
		}
	}
}

func (r *randomRun) batch(a *author, step int) storage.Batch {
	a.head, _ = r.model.Head(r.Context(), a.tenant)
	b := a.draft(r.random.IntN(5))
	for i := range b.Events {
		if r.random.IntN(12) == 0 {
			b.Events[i].ID = id.Event(fmt.Sprintf("event-%d", r.random.IntN(20)))
		}
		if r.random.IntN(4) == 0 {
			b.Events[i].IdempotencyKey = fmt.Sprint(r.random.IntN(100))
		}
		if r.random.IntN(5) == 0 {
			b.Events[i].Envelope = nil
		}
	}
	if size := int(b.Expect.Size); size > 0 && len(b.Events) > 0 && r.random.IntN(2) == 0 {
		for range 1 + r.random.IntN(3) {
			begin, by := id.Index(r.random.IntN(size)), r.random.IntN(len(b.Events))
			end := begin + id.Index(1+r.random.IntN(size-int(begin)))
			b.Events[by].Erases = append(b.Events[by].Erases, id.Range{Begin: begin, End: end})
		}
	}
	if r.random.IntN(8) == 0 {
		b.Expect.Root[0]++
	}
	if r.random.IntN(4) == 0 {
		b.Tiles = []storage.Tile{a.makeTile(uint8(r.random.IntN(2)), uint64(r.random.IntN(3)))}
	}
	b.Counters = []storage.Counter{{Name: fmt.Sprint(r.random.IntN(3)), Value: r.random.Uint64()}}
	b.Changes = r.changes(step)
	return b
}

func (r *randomRun) changes(step int) (changes []storage.Change) {
	for i := range r.random.IntN(4) {
		c := putChange("kind", fmt.Sprint(r.random.IntN(6)), fmt.Sprint(step, i), uint64(r.random.IntN(3)))
		c.Item = i
		if r.random.IntN(2) == 0 {
			c.If = storage.AnyVersion
		}
		if r.random.IntN(5) == 0 {
			c.Value = nil
		}
		if r.random.IntN(6) == 0 {
			c.Version = 1 + r.random.Uint64N(4)
		}
		changes = append(changes, c)
	}
	return changes
}

func (r *randomRun) writeSome(step int) {
	t := r.authors[r.random.IntN(len(r.authors))].tenant
	changes := r.changes(step)
	r.sameAnswer(step, r.Write(r.Context(), t, changes), r.model.Write(r.Context(), t, changes))
}

// sameAnswer compares the kind of two results and the items that they name.
func (r *randomRun) sameAnswer(step int, got, want error) {
	r.Helper()
	var gotItem, wantItem *storage.ItemError
	errors.As(got, &gotItem)
	errors.As(want, &wantItem)
	for _, kind := range []error{nil, storage.ErrConflict, storage.ErrDuplicate, storage.ErrStale} {
		if errors.Is(got, kind) != errors.Is(want, kind) {
			r.Fatalf("step %d: got result %v, want %v", step, got, want)
		}
	}
	if wantItem != nil && (gotItem == nil || gotItem.Item != wantItem.Item) {
		r.Fatalf("step %d: got result %v, want %v", step, got, want)
	}
}

func (r *randomRun) compare() {
	p := probe{kinds: []storage.Kind{"kind"}, counters: []string{"0", "1", "2"}}
	for i := range 100 {
		p.names = append(p.names, storage.DedupKey{Text: fmt.Sprintf("event-%d", i)}, storage.DedupKey{Idempotency: true, Text: fmt.Sprint(i)})
	}
	for i := range uint64(6) {
		p.tiles = append(p.tiles, storage.Tile{Level: uint8(i / 3), Index: i % 3})
	}
	for _, a := range r.authors {
		p.sameContents(r.T, r, r.model, a.tenant)
	}
}
