package log

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Level is the consequence of a fault for its ledger.
type Level string

const (
	Healthy  Level = ""          // no fault is known
	Suspect  Level = "suspect"   // an envelope or record is damaged: chain_valid is false
	ReadOnly Level = "read_only" // no anchor confirms the head: read-only until adopted
	Held     Level = "held"      // the records of the organization contradict the log: no events until an operator decides
	// No faults, but reasons to take no events: an import that has not ended, and
	// a ledger that goes on in another store.
	Importing Level = "importing"
	Moved     Level = "moved"
	Frozen    Level = "frozen" // chain, tree or head is damaged or forked: for ever
	// Succeeded is the level of a frozen ledger that has a successor with an event. The ledger
	// stays frozen, and no State has this level.
	Succeeded Level = "succeeded"
)

// isWorseThan reports whether v has more consequences for a ledger than other.
func (v Level) isWorseThan(other Level) bool {
	rank := map[Level]int{Healthy: 0, Suspect: 1, ReadOnly: 2, Held: 3, Importing: 4, Moved: 5, Frozen: 6}
	return rank[v] > rank[other]
}

// Fault is a known fault of a ledger.
type Fault struct {
	Level  Level      `json:"level"`
	Reason string     `json:"reason"`
	At     id.Instant `json:"at"`
}

// IsDamage reports whether a read failed because the stored values are damaged, not
// because the store can't be reached.
func IsDamage(err error) bool {
	return errors.Is(err, ErrInconsistent) || errors.Is(err, storage.ErrCorrupt) || errors.Is(err, storage.ErrNotFound)
}

// worseOf returns the worse of two faults, f when they are equal.
func (f Fault) worseOf(other Fault) Fault {
	if other.Level.isWorseThan(f.Level) {
		return other
	}
	return f
}

// storedFault returns the fault that is on record. A record that can't be read counts as
// the worst fault, because a healthy ledger has no record.
func (l *Ledgers) storedFault(ctx context.Context, t id.Tenant) (Fault, error) {
	f, err := l.readFault(ctx, t)
	if IsDamage(err) {
		return Fault{Level: Frozen, Reason: "the fault record can't be read", At: id.InstantOf(l.clock())}, nil
	}
	return f, storeError("read fault record", err)
}

func (l *Ledgers) readFault(ctx context.Context, t id.Tenant) (f Fault, err error) {
	err = l.readOwnRecord(ctx, t, kindFault, &f)
	if errors.Is(err, storage.ErrNotFound) {
		return Fault{}, nil
	}
	if err == nil && !f.Level.isWorseThan(Healthy) {
		err = fmt.Errorf("%w: level %q", storage.ErrCorrupt, f.Level)
	}
	return f, err
}

// readOwnRecord reads a record that the ledgers keep about a ledger. One that is not JSON is storage.ErrCorrupt.
func (l *Ledgers) readOwnRecord(ctx context.Context, t id.Tenant, kind storage.Kind, into any) error {
	r, err := l.store.Get(ctx, t, kind, "")
	if err != nil {
		return err
	}
	if err := json.Unmarshal(r.Value, into); err != nil {
		return fmt.Errorf("%w: %s: %w", storage.ErrCorrupt, kind, err)
	}
	return nil
}

// Freeze stops a ledger for good, because of something outside of the store, for example a
// checkpoint that was shown and that the head does not extend. The reason goes to the
// operator's log and to the record of the fault, not to the public.
func (l *Ledgers) Freeze(ctx context.Context, t id.Tenant, reason string) error {
	return l.MarkFault(ctx, t, Frozen, reason)
}

// MarkFault records a fault of a ledger, for good, unless a worse one is on record. The reason is told as by Freeze.
func (l *Ledgers) MarkFault(ctx context.Context, t id.Tenant, level Level, reason string) error {
	led, err := l.residentLedger(ctx, t)
	if err != nil {
		return err
	}
	l.recordFault(context.WithoutCancel(ctx), led, level, reason)
	return nil
}

// recordFault records a fault, for good, and publishes the marked state. A worse one that is on record stays.
func (l *Ledgers) recordFault(ctx context.Context, led *ledger, level Level, reason string) {
	f := Fault{Level: level, Reason: reason, At: id.InstantOf(l.clock())}
	l.logger.Error("ledger fault found", "origin", led.identity.Origin, "level", level, "reason", reason)
	l.metrics.Faults.WithLabelValues(string(level)).Inc()
	led.markMu.Lock()
	defer led.markMu.Unlock()
	if err := l.storeFault(ctx, led.identity.Tenant, f); err != nil {
		l.logger.Error("ledger fault not stored", "origin", led.identity.Origin, "err", err)
	}
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	if s := led.published.Load(); f.Level.isWorseThan(s.fault.Level) {
		led.published.Store(s.copyWithFault(f))
	}
	l.relisted.Tell(led.identity.Tenant)
}

func (l *Ledgers) storeFault(ctx context.Context, t id.Tenant, f Fault) error {
	stored, err := l.storedFault(ctx, t)
	if err != nil || !f.Level.isWorseThan(stored.Level) {
		return err
	}
	value, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return l.store.Write(ctx, t, []storage.Change{{Kind: kindFault, Value: value, If: storage.AnyVersion}})
}
