package log

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

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
