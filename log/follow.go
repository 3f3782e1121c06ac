package log

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/tlog"
)

// moveFollowers are the followers of one kind of change. The finisher notifies them, so Tell never blocks.
type moveFollowers struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*syncs.Inbox[id.Tenant]] // copied on write
}

// New adds a follower. It collects changes as long as the ledgers exist.
func (f *moveFollowers) New() *syncs.Inbox[id.Tenant] {
	added := syncs.NewInbox[id.Tenant](0)
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []*syncs.Inbox[id.Tenant]
	if old := f.all.Load(); old != nil {
		all = append(all, *old...)
	}
	all = append(all, added)
	f.all.Store(&all)
	return added
}

// Tell adds a changed ledger to every follower.
func (f *moveFollowers) Tell(t id.Tenant) {
	if all := f.all.Load(); all != nil {
		for _, inbox := range *all {
			inbox.Add(t)
		}
	}
}

// Moves returns an inbox for the ledgers that get a new published state from now on. It is not bounded.
func (l *Ledgers) Moves() *syncs.Inbox[id.Tenant] { return l.moves.New() }

// Relisted returns an inbox for the ledgers whose Listing may change from now on. It may collect others too. It is not
// bounded.
func (l *Ledgers) Relisted() *syncs.Inbox[id.Tenant] { return l.relisted.New() }

// Listing is the entry of a log in the list of the logs of a service.
type Listing struct {
	Origin id.Origin
	Key    tlog.VerifierKey // the latest one
}

// Listing returns the entry of a ledger's log. ok is false if there is no such ledger, or if it will not show a larger tree
// here because it is frozen, moved or importing. Listing does not load the ledger.
func (l *Ledgers) Listing(ctx context.Context, t id.Tenant) (listing Listing, ok bool, err error) {
	identity, keys, level, err := l.readStanding(ctx, t)
	switch {
	case fault.Is(err, fault.NotFound):
		return Listing{}, false, nil
	case err != nil:
		return Listing{}, false, err
	case level == Frozen || level == Moved || level == Importing:
		return Listing{}, false, nil
	}
	return Listing{Origin: identity.Origin, Key: keys.all[len(keys.all)-1].Verifier}, true, nil
}

// readStanding returns the identity, keys and fault level of a ledger without loading it: from the published state if the
// ledger is in memory, and otherwise from its records.
func (l *Ledgers) readStanding(ctx context.Context, t id.Tenant) (*Identity, *logKeys, Level, error) {
	if s := l.findResident(t); s != nil {
		return s.identity, s.keys, s.fault.Level, nil
	}
	identity, keys, err := l.readIdentity(ctx, t)
	if err != nil {
		return nil, nil, Healthy, err
	}
	known, err := l.storedFault(ctx, t)
	return identity, keys, known.Level, err
}

// findResident returns the published state of a ledger that is in memory, or nil.
func (l *Ledgers) findResident(t id.Tenant) *State {
	l.slotsMu.RLock()
	r := l.slots[t]
	l.slotsMu.RUnlock()
	if r == nil {
		return nil
	}
	if !r.isReady() || r.led == nil {
		return nil
	}
	return r.led.published.Load()
}

// FaultLevel returns the known fault level of a ledger without loading it. stored is the value of its record of KindFault,
// or nil. A record that can't be read counts as the worst fault.
func (l *Ledgers) FaultLevel(ctx context.Context, t id.Tenant, stored []byte) Level {
	if s := l.findResident(t); s != nil {
		return l.levelOrSucceeded(ctx, t, s.fault.Level)
	}
	var f Fault
	if stored != nil && (json.Unmarshal(stored, &f) != nil || !f.Level.isWorseThan(Healthy)) {
		f.Level = Frozen
	}
	return l.levelOrSucceeded(ctx, t, f.Level)
}

func (l *Ledgers) levelOrSucceeded(ctx context.Context, t id.Tenant, level Level) Level {
	if now, err := l.levelWithSuccessor(ctx, t, level); err == nil {
		return now
	}
	return level
}
