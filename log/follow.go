package log

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Moves collects the ledgers that have changed. A follower may be slow: a ledger that changes a thousand times between
// two calls of Take is collected once. Its methods may be called concurrently.
type Moves struct {
	mu    sync.Mutex
	moved map[id.Tenant]struct{}
	ready chan struct{} // holds a token while moved is not empty
}

// Ready returns a channel that receives when Take has something to return.
func (m *Moves) Ready() <-chan struct{} { return m.ready }

// Take returns the ledgers that have changed since the last call, each once and in no particular order.
func (m *Moves) Take() []id.Tenant {
	m.mu.Lock()
	moved := m.moved
	m.moved = make(map[id.Tenant]struct{})
	m.mu.Unlock()
	return slices.Collect(maps.Keys(moved))
}

func (m *Moves) addMoved(t id.Tenant) {
	m.mu.Lock()
	m.moved[t] = struct{}{}
	m.mu.Unlock()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// moveFollowers are the followers of one kind of change: new heads or repaired ledgers, for example. The sequencer and
// the finisher notify them, so Tell must never wait for a follower.
type moveFollowers struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*Moves] // replaced, never changed
}

// New adds a follower, which collects changes until the ledgers are closed.
func (f *moveFollowers) New() *Moves {
	m := &Moves{moved: make(map[id.Tenant]struct{}), ready: make(chan struct{}, 1)}
	f.mu.Lock()
	defer f.mu.Unlock()
	var followed []*Moves
	if old := f.all.Load(); old != nil {
		followed = append(followed, *old...)
	}
	followed = append(followed, m)
	f.all.Store(&followed)
	return m
}

// Tell notes a changed ledger for every follower. It costs one map entry per follower and never blocks.
func (f *moveFollowers) Tell(t id.Tenant) {
	if followed := f.all.Load(); followed != nil {
		for _, m := range *followed {
			m.addMoved(t)
		}
	}
}

// Moves begins to collect the ledgers that get a new published state. Moves before the call are not collected.
func (l *Ledgers) Moves() *Moves { return l.moves.New() }

// Relisted begins to collect the ledgers whose Listing may have changed, as Moves does. It may collect others too.
func (l *Ledgers) Relisted() *Moves { return l.relisted.New() }

// Listing is the announcement of a log to the followers of all logs of a service.
type Listing struct {
	Origin id.Origin
	Key    tlog.VerifierKey // the newest one, which signs from now on
}

// Listing returns how the log of a ledger is announced. ok is false for one that shows
// no newer tree here: frozen, moved to another place, or not arrived yet; and for a
// handle without a ledger. It does not bring a ledger into memory that is not there.
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

// readStanding returns identity, keys and fault level of a ledger without reading its
// tree: from the published state if the ledger is in memory, or else from its records.
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

// findResident returns the published state of a ledger that is in memory, else nil.
func (l *Ledgers) findResident(t id.Tenant) *State {
	l.slotsMu.RLock()
	r := l.slots[t]
	l.slotsMu.RUnlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.ready:
	default:
		return nil
	}
	if r.led == nil {
		return nil
	}
	return r.led.published.Load()
}

// FaultLevel returns the known level of a ledger without loading it. stored is the value of its record
// of KindFault, nil for none. One that can't be read counts as the worst fault.
func (l *Ledgers) FaultLevel(ctx context.Context, t id.Tenant, stored []byte) Level {
	l.slotsMu.RLock()
	r := l.slots[t]
	l.slotsMu.RUnlock()
	if r != nil {
		select {
		case <-r.ready:
			if r.led != nil {
				return l.levelOrSucceeded(ctx, t, r.led.published.Load().fault.Level)
			}
		default:
		}
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
