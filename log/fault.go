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
	Frozen   Level = "frozen"    // chain, tree or head is damaged or forked: for ever
)

// worse reports whether v does more to a ledger than other.
func (v Level) worse(other Level) bool {
	rank := map[Level]int{Healthy: 0, Suspect: 1, ReadOnly: 2, Frozen: 3}
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

func (l *Ledgers) storedFault(ctx context.Context, t id.Tenant) (Fault, error) {
	r, err := l.store.Get(ctx, t, kindFault, "")
	if errors.Is(err, storage.ErrNotFound) {
		return Fault{}, nil
	}
	if err != nil {
		return Fault{}, storeError("load ledger: fault", err)
	}
	var f Fault
	if err := json.Unmarshal(r.Value, &f); err != nil {
		return Fault{}, fmt.Errorf("load ledger: fault: %w", err)
	}
	return f, nil
}

// mark records a fault for good and publishes the marked state.
func (l *Ledgers) mark(ctx context.Context, led *ledger, level Level, reason string) {
	f := Fault{Level: level, Reason: reason, At: id.InstantOf(l.clock())}
	l.logger.Error("ledger fault found", "origin", led.identity.Origin, "level", level, "reason", reason)
	l.metrics.faults.WithLabelValues(string(level)).Inc()
	value, err := json.Marshal(f)
	if err == nil {
		err = l.store.Write(ctx, led.identity.Tenant, []storage.Change{{Kind: kindFault, Value: value, If: storage.AnyVersion}})
	}
	if err != nil {
		l.logger.Error("ledger fault not stored", "origin", led.identity.Origin, "err", err)
	}
	led.publishMu.Lock()
	defer led.publishMu.Unlock()
	if s := led.published.Load(); f.Level.worse(s.fault.Level) {
		led.published.Store(s.withFault(f))
	}
}
