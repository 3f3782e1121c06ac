package pgstore

import (
	"context"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
)

const (
	warmConnections = 8  // concurrent calls, as far as an engine has connections
	warmTenants     = 64 // random tenants that are tried to reach all streams
)

// Warm makes the first use of a store as fast as later ones. A server engine opens a connection when it first needs it,
// and each connection prepares a statement when it first uses it. On a busy machine this takes longer than everything
// else in a take-over. So Warm makes the calls of a take-over and of the first event after it, and returns when they
// have returned or ctx ends; an append is not canceled by ctx. It opens connections one after another, to leave
// processor time to the database and other programs in the meantime.
//
// Warm writes nothing and reads no organization's data: all calls are for a random tenant without a ledger. It ignores
// errors, because the callers that really use the store report them.
func Warm(ctx context.Context, e storage.Engine) {
	t := id.NewTenant()
	useAppends(ctx, e)
	calls := reads(e, t)
	for open := range warmConnections {
		callAtOnce(ctx, open+1, calls[0]) // needs one connection more than are open
	}
	for _, call := range calls[1:] {
		callAtOnce(ctx, warmConnections, call)
	}
}

// callAtOnce makes n concurrent calls, each on a separate connection if the engine has enough.
func callAtOnce(ctx context.Context, n int, call func(context.Context)) {
	var group sync.WaitGroup
	for range n {
		group.Go(func() { call(ctx) })
	}
	group.Wait()
}

// reads returns the read calls, one per statement.
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

// useAppends makes appends to each stream. They are not applied, because they expect a head that does not exist.
func useAppends(ctx context.Context, e storage.Engine) {
	seen := make(map[int]bool)
	for range warmTenants {
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

// raising returns the batch of a take-over.
func raising(t id.Tenant) storage.Batch {
	absent := storage.Head{Size: 1, Root: id.Hash{1}, Epoch: 1}
	return storage.Batch{Tenant: t, Expect: absent, Head: absent}
}

// oneEvent returns a batch of a single event.
func oneEvent(t id.Tenant) storage.Batch {
	b := raising(t)
	b.Head.Size = 2
	b.Events = []storage.Event{{Index: 1, ID: "warm", Record: []byte("{}"), Envelope: []byte("{}")}}
	b.Counters = []storage.Counter{{Name: "warm", Value: 1}}
	return b
}
