package pgstore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// shape is a kind of batch. It determines which statement writes the batch.
type shape struct {
	name string
	next func(w *storagetest.Writer) storage.Batch
}

func shapes() []shape {
	return []shape{
		{"no event", func(w *storagetest.Writer) storage.Batch { return w.Next(0) }},
		{"one event", func(w *storagetest.Writer) storage.Batch { return w.Next(1) }},
		{"one event without a counter", func(w *storagetest.Writer) storage.Batch {
			b := w.Next(1)
			b.Counters = nil
			return b
		}},
		{"some events", func(w *storagetest.Writer) storage.Batch { return w.Next(3) }},
		{"many events, and a tile", func(w *storagetest.Writer) storage.Batch { return w.Next(300) }},
	}
}

// Each statement compares each field of the head, and moves only the head of its own ledger: Blue's head is the same as
// Red's.
func TestEachStatementIsGuarded(t *testing.T) {
	e := open(t, pgstore.Options{URL: fresh(t, shared)})
	t.Cleanup(func() { _ = e.Close() })
	write := func(b storage.Batch) error { return e.Append([]storage.Batch{b}).Wait()[0] }
	for i, s := range shapes() {
		red, blue := id.Tenant(2*i+10), id.Tenant(2*i+11)
		w := storagetest.NewWriter(red)
		founding := w.Next(0)
		for _, tenant := range []id.Tenant{red, blue} {
			founding.Tenant = tenant
			if err := write(founding); err != nil {
				t.Fatal(err)
			}
		}
		batch := s.next(w)
		for field, mutate := range mutations() {
			wrong := batch
			wrong.Events = slices.Clone(batch.Events)
			mutate(&wrong)
			if err := write(wrong); !errors.Is(err, storage.ErrConflict) {
				t.Errorf("%s: another %s: got %v, want %v", s.name, field, err, storage.ErrConflict)
			}
		}
		if err := write(batch); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		for tenant, want := range map[id.Tenant]storage.Head{red: batch.Head, blue: founding.Head} {
			if got, err := e.Head(t.Context(), tenant); err != nil || got != want {
				t.Errorf("%s: tenant %d: got head %+v, %v, want %+v", s.name, tenant, got, err, want)
			}
		}
	}
}

// mutations are batches for another head.
func mutations() map[string]func(*storage.Batch) {
	return map[string]func(*storage.Batch){
		"size": func(b *storage.Batch) {
			b.Expect.Size++
			b.Head.Size++
			for i := range b.Events {
				b.Events[i].Index++
			}
		},
		"root":                     func(b *storage.Batch) { b.Expect.Root[31] ^= 1 },
		"epoch":                    func(b *storage.Batch) { b.Expect.Epoch++ },
		"version of configuration": func(b *storage.Batch) { b.Expect.ConfigVersion++ },
	}
}

// Queries about one event, which use separate statements, return only data of their own tenant.
func TestQuestionsAboutOneEvent(t *testing.T) {
	e := open(t, pgstore.Options{URL: fresh(t, shared)})
	t.Cleanup(func() { _ = e.Close() })
	const red, blue id.Tenant = 5, 6
	written := map[id.Tenant][]storage.Event{}
	for _, tenant := range []id.Tenant{red, blue} {
		w := storagetest.NewWriter(tenant)
		for _, n := range []int{1, 300} { // in rows, and in segments
			b := w.Next(n)
			for i := range b.Events {
				b.Events[i].IdempotencyKey = "key of " + string(b.Events[i].ID)
			}
			if err := e.Append([]storage.Batch{b}).Wait()[0]; err != nil {
				t.Fatal(err)
			}
			written[tenant] = append(written[tenant], b.Events...)
		}
	}
	for tenant, other := range map[id.Tenant]id.Tenant{red: blue, blue: red} {
		for _, i := range []id.Index{0, 100} {
			own, strange := &written[tenant][i], &written[other][i]
			got := e.Entries(t.Context(), []storage.Position{{Tenant: tenant, Index: i}})[0]
			if got.Err != nil || got.Entry != own.Entry {
				t.Errorf("tenant %d: entry %d: got %+v, want %+v", tenant, i, got, own.Entry)
			}
			for _, query := range []struct{ id, key *storage.Event }{{own, own}, {own, strange}, {strange, own}} {
				names := []storage.DedupKey{{Text: string(query.id.ID)}, {Idempotency: true, Text: query.key.IdempotencyKey}}
				found, err := e.Lookup(t.Context(), tenant, names)
				want := []id.Index{storage.NoIndex, storage.NoIndex}
				for n, of := range []*storage.Event{query.id, query.key} {
					if of == own {
						want[n] = i
					}
				}
				if err != nil || !slices.Equal(found, want) {
					t.Errorf("tenant %d: look-up of %v: got %v, %v, want %v", tenant, names, found, err, want)
				}
			}
		}
	}
}
