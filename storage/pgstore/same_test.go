package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/tlog"
)

// The same ledgers on both engines, with the same keys, clock and random submissions, have the same bytes: events,
// records, counters, tiles and checkpoints.
func TestSameBytesAsPebble(t *testing.T) {
	pebble, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	postgres := open(t, pgstore.Options{URL: fresh(t, shared)})
	one := newWorld(t, pebble)
	one.found()
	for _, tenant := range []id.Tenant{red, blue} {
		copyGenesis(t, pebble, postgres, tenant)
	}
	two := newWorld(t, postgres)
	two.close()
	two.keyring, two.agent = one.keyring, one.agent
	two.open()
	for seed := range uint64(3) {
		a, b := one.play(seed), two.play(seed)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("seed %d: the engines answer differently", seed)
		}
		for _, tenant := range []id.Tenant{red, blue} {
			one.sameAs(two, tenant)
		}
	}
	one.close()
	two.close()
	closeEngine(t, postgres)
	if err := pebble.Close(); err != nil {
		t.Error(err)
	}
}

// copyGenesis creates a ledger on another engine with the first batch of the original, because its log key is random.
func copyGenesis(t *testing.T, from, to storage.Engine, tenant id.Tenant) {
	t.Helper()
	head, err := from.Head(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := from.Get(t.Context(), tenant, "ledger", "")
	if err != nil {
		t.Fatal(err)
	}
	b := storage.Batch{Tenant: tenant, Head: head, Changes: []storage.Change{{Kind: "ledger", Value: identity.Value}}}
	if err := to.Append([]storage.Batch{b}).Wait()[0]; err != nil {
		t.Fatal(err)
	}
}

// play appends random submissions and returns all results and the checkpoints in between.
func (w *world) play(seed uint64) (answers []any) {
	random := rand.New(rand.NewPCG(seed, 5))
	for step := range 30 {
		tenant := []id.Tenant{red, blue}[random.IntN(2)]
		var prepares []log.Prepare
		for i := range 1 + random.IntN(4) {
			prepares = append(prepares, w.randomSubmission(random, tenant, fmt.Sprintf("s%d-%d-%d", seed, step, i)))
		}
		for _, o := range w.ledgers.AppendAll(w.t.Context(), tenant, prepares) {
			answers = append(answers, o.Receipts, fmt.Sprint(o.Err))
		}
		answers = append(answers, string(w.state(tenant).Checkpoint()))
		w.Pass(time.Duration(random.Int64N(5000)) * time.Millisecond)
	}
	return answers
}

// randomSubmission has several events, sometimes a name that is taken, and sometimes changes of records.
func (w *world) randomSubmission(random *rand.Rand, tenant id.Tenant, name string) log.Prepare {
	var names []string
	for i := range 1 + random.IntN(12) {
		names = append(names, fmt.Sprintf("%s-%d", name, i))
	}
	if random.IntN(10) == 0 {
		names[0] = "s0-0-0-0"
	}
	prepare := w.prepare(tenant, names...)
	change := storage.Change{Kind: "setting", Key: fmt.Sprint(random.IntN(3)), Value: []byte(name), If: storage.AnyVersion}
	if random.IntN(4) > 0 {
		return prepare
	}
	return func(ctx context.Context, s *log.State) (log.Submission, error) {
		sub, err := prepare(ctx, s)
		sub.Changes, sub.Reconfigures = []storage.Change{change}, true
		return sub, err
	}
}

// sameAs compares everything that two services have of a tenant.
func (w *world) sameAs(other *world, tenant id.Tenant) {
	w.t.Helper()
	if got, want := other.contents(tenant), w.contents(tenant); !reflect.DeepEqual(got, want) {
		w.t.Errorf("tenant %d: the engines hold different things", tenant)
	}
}

func (w *world) contents(tenant id.Tenant) (all []any) {
	w.t.Helper()
	ctx, s := w.t.Context(), w.state(tenant)
	head, err := w.store.Head(ctx, tenant)
	if err != nil {
		w.t.Fatal(err)
	}
	all = append(all, head, string(s.Checkpoint()))
	for e, err := range w.store.Events(ctx, tenant, 0, storage.NoIndex, storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, e)
	}
	records, err := w.store.Scan(ctx, tenant, "setting", "", "", 100)
	if err != nil {
		w.t.Fatal(err)
	}
	counters, err := w.store.Counters(ctx, tenant, []string{"events/2026-11"})
	if err != nil {
		w.t.Fatal(err)
	}
	return append(append(all, records, counters), w.allTiles(s)...)
}

// allTiles reads each tile of a tree, full or not.
func (w *world) allTiles(s *log.State) (all []any) {
	w.t.Helper()
	width := uint64(s.Size())
	for level := uint8(0); width > 0; level++ {
		for i := uint64(0); i*tlog.TileWidth < width; i++ {
			t := tlog.Tile{Level: level, Index: i, Width: uint16(min(tlog.TileWidth, width-i*tlog.TileWidth))}
			hashes, err := w.ledgers.Tile(w.t.Context(), s, t)
			if err != nil {
				w.t.Fatal(err)
			}
			all = append(all, hashes)
		}
		width /= tlog.TileWidth
	}
	return all
}
