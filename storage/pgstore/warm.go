package pgstore

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
)

const (
	connections = 8  // that a call is made on at once, as far as an engine has them
	streamTries = 64 // handles that are looked at for appends of all streams
)

// Warm makes the calls of a take-over and of the first event behind it, and returns when they have ended or ctx ends.
// Appends are not ended by ctx. Connections are opened one after another, because other programs of the machine, such
// as the database, have work to do meanwhile.
func Warm(ctx context.Context, e storage.Engine) {
	t := id.NewTenant()
	useAppends(ctx, e)
	calls := reads(e, t)
	for open := range connections {
		callAtOnce(ctx, open+1, calls[0]) // this needs one connection more than are open
	}
	for _, call := range calls[1:] {
		callAtOnce(ctx, connections, call)
	}
}

// callAtOnce makes a call n times at once, each on a connection of its own as far as the engine has them.
func callAtOnce(ctx context.Context, n int, call func(context.Context)) {
	var group sync.WaitGroup
	for range n {
		group.Go(func() { call(ctx) })
	}
	group.Wait()
}

// reads are the calls that read, one statement each.
func reads(e storage.Engine, t id.Tenant) []func(context.Context) {
	const kind = storage.Kind("warm")
	return []func(context.Context){
		func(ctx context.Context) { _, _ = e.Head(ctx, t) },
		func(ctx context.Context) { _, _ = e.Get(ctx, t, kind, "") },
		func(ctx context.Context) { _, _ = e.Scan(ctx, t, kind, "", "", 1) },
		func(ctx context.Context) { _, _ = e.Counters(ctx, t, []string{"warm"}) },
		func(ctx context.Context) { _, _ = e.Lookup(ctx, t, []storage.DedupKey{{Text: "warm"}}) },
		func(ctx context.Context) { _, _ = e.Lookup(ctx, t, []storage.DedupKey{{Text: "warm"}, {Text: "too"}}) },
		func(ctx context.Context) { _, _ = e.TileRoots(ctx, t, 0, 0, 1) },
		func(ctx context.Context) { _, _ = e.TileHashes(ctx, t, 0, 0, 0, 1) },
		func(ctx context.Context) { _ = e.Entries(ctx, []storage.Position{{Tenant: t}}) },
		func(ctx context.Context) { _ = e.Entries(ctx, []storage.Position{{Tenant: t}, {Tenant: t, Index: 1}}) },
		func(ctx context.Context) { useEvents(ctx, e, t, 0) },
		func(ctx context.Context) { useEvents(ctx, e, t, storage.FieldRecord|storage.FieldEnvelope) },
	}
}

func useEvents(ctx context.Context, e storage.Engine, t id.Tenant, parts storage.Fields) {
	for range e.Events(ctx, t, 0, 1, parts) {
		return
	}
}

// useAppends makes appends of each stream, which meet no ledger.
func useAppends(ctx context.Context, e storage.Engine) {
	seen := make(map[int]bool)
	for range streamTries {
		t := id.NewTenant()
		s := e.Stream(t)
		if seen[s] {
			continue
		}
		seen[s] = true
		for _, batch := range []storage.Batch{raising(t), oneEvent(t)} {
			p := e.Append([]storage.Batch{batch})
			_ = syncs.Within(ctx, func() error { p.Wait(); return nil })
		}
	}
}

// raising is the batch of a take-over.
func raising(t id.Tenant) storage.Batch {
	absent := storage.Head{Size: 1, Root: id.Hash{1}, Epoch: 1}
	return storage.Batch{Tenant: t, Expect: absent, Head: absent}
}

// oneEvent is the batch of an event that is alone.
func oneEvent(t id.Tenant) storage.Batch {
	b := raising(t)
	b.Head.Size = 2
	b.Events = []storage.Event{{Index: 1, ID: "warm", Record: []byte("{}"), Envelope: []byte("{}")}}
	b.Counters = []storage.Counter{{Name: "warm", Value: 1}}
	return b
}
