package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Level says what a fault does to its ledger.
type Level string

const (
	Healthy  Level = ""          // no fault is known
	Suspect  Level = "suspect"   // an envelope or record is damaged: chain_valid is false
	ReadOnly Level = "read_only" // no anchor confirms the head: read-only until adopted
	// No faults, but reasons to take no events: an import that has not ended, and
	// a ledger that goes on in another store.
	Importing Level = "importing"
	Moved     Level = "moved"
	Frozen    Level = "frozen" // chain, tree or head is damaged or forked: for ever
	// Succeeded is what a frozen ledger counts as once another goes on in its place.
	// It stays frozen; no State has this level.
	Succeeded Level = "succeeded"
)

// worse reports whether v does more to a ledger than other.
func (v Level) worse(other Level) bool {
	rank := map[Level]int{Healthy: 0, Suspect: 1, ReadOnly: 2, Importing: 3, Moved: 4, Frozen: 5}
	return rank[v] > rank[other]
}

// Fault is what is known to be wrong with a ledger.
type Fault struct {
	Level  Level      `json:"level"`
	Reason string     `json:"reason"`
	At     id.Instant `json:"at"`
}

// isDamage reports whether a read failed because of what is stored, not because
// the store can't be reached.
func isDamage(err error) bool {
	return errors.Is(err, errInconsistent) || errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrNotFound)
}

// or returns the worse of two faults, f when they are equal.
func (f Fault) or(other Fault) Fault {
	if other.Level.worse(f.Level) {
		return other
	}
	return f
}

// storedFault returns what is on record of a ledger. A record that can't be read
// is one of the worst fault: it would not be there if all were well.
func (l *Ledgers) storedFault(ctx context.Context, t id.Tenant) (Fault, error) {
	f, err := l.readFault(ctx, t)
	if isDamage(err) {
		return Fault{Level: Frozen, Reason: "the fault record can't be read", At: id.InstantOf(l.clock())}, nil
	}
	return f, storeError("read fault record", err)
}

func (l *Ledgers) readFault(ctx context.Context, t id.Tenant) (f Fault, err error) {
	err = l.ownRecord(ctx, t, kindFault, &f)
	if errors.Is(err, storage.ErrNotFound) {
		return Fault{}, nil
	}
	if err == nil && !f.Level.worse(Healthy) {
		err = fmt.Errorf("%w: level %q", storage.ErrCorrupt, f.Level)
	}
	return f, err
}

// ownRecord reads a record that the ledgers keep about a ledger. One that is not
// JSON is storage.ErrCorrupt.
func (l *Ledgers) ownRecord(ctx context.Context, t id.Tenant, kind storage.Kind, into any) error {
	r, err := l.store.Get(ctx, t, kind, "")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(r.Value, into); err != nil {
		return fmt.Errorf("%w: %s: %w", storage.ErrCorrupt, kind, err)
	}
	return nil
}

// Freeze stops a ledger for good, for what somebody outside of the store knows of
// it: that a checkpoint was shown which the head does not extend. reason goes to
// the operator's log and to the record of the fault, not to the public.
func (l *Ledgers) Freeze(ctx context.Context, t id.Tenant, reason string) error {
	led, err := l.ledger(ctx, t)
	if err != nil {
		return err
	}
	l.mark(context.WithoutCancel(ctx), led, Frozen, reason)
	return nil
}

// mark records a fault, for good, and publishes the marked state. A worse one
// that is on record stays.
func (l *Ledgers) mark(ctx context.Context, led *ledger, level Level, reason string) {
	f := Fault{Level: level, Reason: reason, At: id.InstantOf(l.clock())}
	l.logger.Error("ledger fault found", "origin", led.identity.Origin, "level", level, "reason", reason)
	l.metrics.faults.WithLabelValues(string(level)).Inc()
	led.markMu.Lock()
	defer led.markMu.Unlock()
	if err := l.storeFault(ctx, led.identity.Tenant, f); err != nil {
		l.logger.Error("ledger fault not stored", "origin", led.identity.Origin, "err", err)
	}
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	if s := led.published.Load(); f.Level.worse(s.fault.Level) {
		led.published.Store(s.withFault(f))
	}
	l.relisted.tell(led.identity.Tenant)
}

func (l *Ledgers) storeFault(ctx context.Context, t id.Tenant, f Fault) error {
	stored, err := l.storedFault(ctx, t)
	if err != nil || !f.Level.worse(stored.Level) {
		return err
	}
	value, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return l.store.Write(ctx, t, []storage.Change{{Kind: kindFault, Value: value, If: storage.AnyVersion}})
}
