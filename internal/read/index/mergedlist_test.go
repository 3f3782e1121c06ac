package index_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// checkSingles looks up traces and hashes of all parts of a ledger.
func (w *world) checkSingles(r *rand.Rand, tenant id.Tenant, n int) {
	w.t.Helper()
	for range n {
		row := pick(r, w.rows[tenant])
		w.checkList(tenant, index.Query{Limit: 7, Ascending: r.IntN(2) == 0, Filter: index.Filter{Trace: row.Trace}}, 3)
		w.checkList(tenant, index.Query{Limit: 7, Filter: index.Filter{Trace: row.Trace, Agent: row.Agent}}, 3)
		if got, err := w.index.Find(w.t.Context(), tenant, row.Hash.String()); err != nil || got != row {
			w.t.Errorf("hash of event %d: got %+v, %v", row.Index, got, err)
		}
	}
	w.checkList(tenant, index.Query{Limit: 1, Filter: index.Filter{Trace: "trc_none"}}, 1)
}

// reads counts the records of traces and hashes that are read.
type reads struct {
	storage.Engine
	n atomic.Int64
}

func (c *reads) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	found, err := c.Engine.Scan(ctx, t, kind, begin, end, limit)
	if kind == "derived/index_singles" || kind == "derived/index_merged" {
		c.n.Add(int64(len(found)))
	}
	return found, err
}

// Traces and hashes are found at each step while blocks are merged, after a follower died at any of its writes, and
// afterwards in a few records of each level.
func TestMergedPostings(t *testing.T) {
	w := newWorld(t, enginetest.Pebble(t), 2*index.BlockEvents+100, func(f *filler) { f.falls = true })
	w.index.MergeBits(1)
	r := rand.New(rand.NewPCG(11, 12))
	for steps := 0; ; steps++ {
		mortal := &enginetest.Mortal{Engine: w.engine}
		mortal.DieAt(r.IntN(40), steps%2 == 0)
		x := w.open(mortal)
		x.MergeBits(1)
		_, err := advanceAll(t.Context(), x, red)
		if (err != nil) != mortal.Dead() {
			t.Fatalf("got %v, dead %v", err, mortal.Dead())
		}
		w.checkSingles(r, red, 1)
		if err == nil {
			break
		}
	}
	w.follow()
	for _, tenant := range []id.Tenant{red, blue} {
		w.checkSingles(r, tenant, 10)
	}
	levels := map[string]int{}
	for key := range w.stored(red) {
		kind, rest, _ := strings.Cut(key, " ")
		if kind == "derived/index_singles" {
			levels["0"]++
		} else if kind == "derived/index_merged" {
			levels[rest[9:10]]++
		}
	}
	if levels["0"] != 0 || levels["1"] != 2*1024 {
		t.Errorf("got %v records by level, want 2,048 of level 1 alone", levels)
	}
	counted := &reads{Engine: w.engine}
	x := w.open(counted)
	x.MergeBits(1)
	row := w.rows[red][77]
	if got, err := x.Find(t.Context(), red, row.Hash.String()); err != nil || got != row || counted.n.Load() > 2 {
		t.Errorf("got %+v, %v by %d records, want one", got, err, counted.n.Load())
	}
	w.damageMerged()
}

// damageMerged damages all merged records, which are never treated as empty ones.
func (w *world) damageMerged() {
	var changes []storage.Change
	for key := range w.stored(red) {
		if name, ok := strings.CutPrefix(key, "derived/index_merged "); ok {
			changes = append(changes, storage.Change{Kind: "derived/index_merged", Key: name, Value: []byte{0, 0, 9, 1}, If: storage.AnyVersion})
		}
	}
	if err := w.engine.Write(w.t.Context(), red, changes); err != nil || len(changes) == 0 {
		w.t.Fatal(err, len(changes))
	}
	q := index.Query{Limit: 3, Filter: index.Filter{Trace: w.rows[red][5].Trace}}
	if _, err := w.index.List(w.t.Context(), red, q); !errors.Is(err, storage.ErrCorrupt) {
		w.t.Errorf("got %v, want damage", err)
	}
	w.follow() // rebuilt
	w.checkList(red, q, 2)
	w.checkList(blue, q, 2)
}
