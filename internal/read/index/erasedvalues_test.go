package index_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// columnWorld is a world whose organizations have columns.
type columnWorld struct {
	*world
	stories map[id.Tenant]*columnStory
	ledgers *reopenable
}

func newColumnWorld(t testing.TB, engine storage.Engine, events int) *columnWorld {
	t.Helper()
	w := &columnWorld{stories: map[id.Tenant]*columnStory{}}
	w.world = newWorld(t, engine, events, func(f *filler) {
		s := &columnStory{story: &story{filler: f, random: rand.New(rand.NewPCG(9, uint64(f.tenant))), now: 1_790_000_000_000}}
		s.columns = []index.Column{{Path: "amount_usd"}, {Path: "note"}, {Path: "order.id"}}
		w.stories[f.tenant], f.make = s, s.next
	})
	w.ledgers = &reopenable{w.Ledgers}
	w.index = w.openColumns(w.ledgers, w.stories)
	return w
}

// grow appends events to the ledger of red.
func (w *columnWorld) grow(n int) {
	w.t.Helper()
	x, f := w.index, newFillerBehind(w.world, red)
	f.append(n)
	w.reopen()
	w.index, w.ledgers.Ledgers = x, w.Ledgers
}

// A record of values that can't be read does not stop the index: an erasure deletes it, and the values are written again.
func TestDamagedValues(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		w := newColumnWorld(t, open(t), index.ChunkEvents+100)
		w.follow()
		stored, err := w.engine.Scan(t.Context(), red, "derived/index_values", "", "", 1)
		if err != nil || len(stored) != 1 {
			t.Fatalf("%d records, %v", len(stored), err)
		}
		damage := storage.Change{Kind: "derived/index_values", Key: stored[0].Key, Value: []byte("damaged"), If: storage.AnyVersion}
		if err := w.engine.Write(t.Context(), red, []storage.Change{damage}); err != nil {
			t.Fatal(err)
		}
		w.grow(2000)
		if waiting, err := w.index.ErasuresWaiting(t.Context(), red); err != nil || !waiting {
			t.Fatalf("before: got %v, %v", waiting, err)
		}
		w.follow()
		if waiting, err := w.index.ErasuresWaiting(t.Context(), red); err != nil || waiting {
			t.Errorf("after: got %v, %v", waiting, err)
		}
		for key, record := range w.valueRecords(red) {
			if _, err := decompress(record); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
		w.checkBuilding(false)
		w.checkColumns(red, w.stories[red], rand.New(rand.NewPCG(1, 1)), 20)
	})
}

// Columns that are removed while they are read do not disturb the reader, who reads the settings once.
func TestColumnsWhileRemoved(t *testing.T) {
	w := newColumnWorld(t, enginetest.Pebble(t), 100)
	calls := 0
	x := index.New(index.Options{Ledgers: w.Ledgers, Store: w.engine, Clock: w.Clock,
		Columns: func(context.Context, *log.State) ([]index.Column, error) {
			calls++
			return w.stories[red].columns[:max(1, 4-calls)], nil
		}})
	if got, err := x.Columns(t.Context(), red); err != nil || len(got) != 3 {
		t.Errorf("got %v, %v", got, err)
	}
}

// A value of an erased event satisfies no condition while the index is too far behind to contain the erasure.
func TestErasedValuesBehind(t *testing.T) {
	w := newColumnWorld(t, enginetest.Pebble(t), index.ChunkEvents+100)
	w.follow()
	w.grow(4*index.ChunkEvents + 100)
	condition, err := column.ParseCondition("note!=none")
	if err != nil {
		t.Fatal(err)
	}
	f := index.Filter{Columns: []column.Condition{condition}}
	for _, text := range []string{"", "evt_"} {
		page, err := w.index.List(t.Context(), red, index.Query{Filter: f, Text: text, Limit: 1000, Ascending: true})
		if err != nil || len(page.Rows) == 0 || page.End != index.ChunkEvents {
			t.Fatalf("got %d rows to %d, %v", len(page.Rows), page.End, err)
		}
		for i := range page.Rows {
			if r := &page.Rows[i]; r.ErasedBy != 0 {
				t.Fatalf("text %q: event %d is erased", text, r.Index)
			}
		}
	}
	if _, err := w.index.Stats(t.Context(), red, f); !fault.Is(err, fault.Unavailable) {
		t.Errorf("statistics: got %v, want %v", err, fault.Unavailable)
	}
}

// Values of erased events are not kept in memory.
func TestErasedTail(t *testing.T) {
	w := newColumnWorld(t, enginetest.Pebble(t), 100)
	if _, err := w.index.List(t.Context(), red, index.Query{Limit: 1}); err != nil || !w.index.CachesTail(red) {
		t.Fatalf("no tail, %v", err)
	}
	if _, err := w.index.ErasuresWaiting(t.Context(), red); err != nil || w.index.CachesTail(red) {
		t.Errorf("the tail is still in memory, %v", err)
	}
}

// A column that was removed and named again has no values from before, even if the follower did not run in between.
func TestColumnNamedAgain(t *testing.T) {
	w := newColumnWorld(t, enginetest.Pebble(t), 2*index.ChunkEvents+100)
	w.follow()
	s := w.stories[red]
	before := len(w.valueRecords(red)["/0000000000"])
	s.columns = s.columns[1:]
	s.name(w.State(t, red).Size(), "amount_usd")
	w.grow(100)
	w.follow()
	got := w.valueRecords(red)
	if err := w.index.Rebuild(t.Context(), red); err != nil {
		t.Fatal(err)
	}
	w.follow()
	if want := w.valueRecords(red); len(want) != 2 || !mapsEqual(got, want) {
		t.Errorf("the records still have earlier values: %d records, %d before", len(got), before)
	}
}

// actReads counts the reads of records of acts.
type actReads struct {
	storage.Engine
	n int
}

func (e *actReads) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if kind == "derived/index_acts" {
		e.n++
	}
	return e.Engine.Scan(ctx, t, kind, begin, end, limit)
}

// An erasure reads each record of acts once, however many erased events are no acts.
func TestEraseReadsActsOnce(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), index.ChunkEvents+10, storyOf)
	w.follow()
	f := newFillerBehind(w, red)
	f.make = func(at id.Index) made {
		e := told{row: index.Row{Index: at, Event: "evt_erasure", ReceivedAt: f.head.LastReceived, Agent: "system", Kind: event.KindErasure,
			Signer: event.SignerSystem, Trace: "ledger", Declared: id.Allow, Effective: id.Allow}, erases: []id.Range{{Begin: 0, End: 2000}}}
		return e.make()
	}
	f.append(1)
	w.reopen()
	store := &actReads{Engine: w.engine}
	if _, err := w.open(store).List(t.Context(), red, index.Query{Limit: 5}); err != nil {
		t.Fatal(err)
	}
	if store.n == 0 || store.n > 20 {
		t.Errorf("records of acts were read %d times", store.n)
	}
}
