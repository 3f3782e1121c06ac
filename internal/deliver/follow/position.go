package follow

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// End returns the cursor behind the newest event of a ledger.
func End(s *log.State) Cursor { return Cursor{Origin: s.Identity().Origin, Next: s.Size()} }

// Position returns a position; it does not exist for an organization without such a follower.
func (f *Follower) Position(ctx context.Context, t id.Tenant, name string) (records.Versioned[Position], error) {
	return f.positions.Get(ctx, t, name)
}

// Begin returns the change that makes a follower go on at a cursor at once, on the condition that its
// position has not changed since it was read. The change MUST be written with its cause. Its due
// entry is written now: one without its position does no harm.
func (f *Follower) Begin(
	ctx context.Context, t id.Tenant, p records.Versioned[Position], at Cursor,
) (storage.Change, error) {
	p.Value = Position{Cursor: at, NextAt: f.currentTime()}
	if err := f.noteDue(ctx, unit{t, p.Key}, p.Value); err != nil {
		return storage.Change{}, err
	}
	return f.positions.Put(p)
}

// Remove returns the change that ends a follower.
func (f *Follower) Remove(name string) storage.Change {
	return storage.Change{Kind: f.Positions, Key: name, If: storage.AnyVersion}
}

// Wake makes a follower be looked at within a second, unless it is in a pause after a failure.
func (f *Follower) Wake(t id.Tenant, name string) { f.wake(unit{t, name}, false) }

// WakeNow is Wake that ends a pause too.
func (f *Follower) WakeNow(t id.Tenant, name string) { f.wake(unit{t, name}, true) }

func (f *Follower) wake(u unit, force bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addKnown(u)
	f.queue.addWaiting(u, force, f.currentTime())
}

// SetNote returns the change that gives a position that was read another note, on the condition that
// the position has not changed since. The change MUST be written with its cause.
func (f *Follower) SetNote(p records.Versioned[Position], note string) (storage.Change, error) {
	p.Value.Note = note
	return f.positions.Put(p)
}

func (f *Follower) noteDue(ctx context.Context, u unit, p Position) error {
	err := f.due.NoteEntries(ctx, schedule.Entry{At: p.NextAt, Tenant: u.tenant, Name: u.name})
	if err != nil {
		return records.Unreadable(f.positions.Message, "note when to look", err)
	}
	return nil
}

// addKnown remembers a follower, so that it is looked at when its ledger moves. f.mu is held.
func (f *Follower) addKnown(u unit) {
	if f.All != nil {
		return
	}
	if f.known[u.tenant] == nil {
		f.known[u.tenant] = make(map[string]struct{})
	}
	f.known[u.tenant][u.name] = struct{}{}
}

func (f *Follower) forget(u unit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.known[u.tenant], u.name)
	if len(f.known[u.tenant]) == 0 {
		delete(f.known, u.tenant)
	}
	delete(f.failing, u)
	f.queue.remove(u)
}

// ServiceRecords returns the due entry of an organization's record of a kind with positions, for code
// that copies an organization. One that is not there is no damage.
func ServiceRecords(t id.Tenant, r storage.Record, positions, due storage.Kind) ([]storage.Record, error) {
	if r.Kind != positions {
		return nil, nil
	}
	p, err := records.Decode[Position](r)
	if err != nil {
		return nil, err
	}
	return []storage.Record{schedule.Entry{At: p.Value.NextAt, Tenant: t, Name: r.Key}.Record(due)}, nil
}

// Lag is how far a follower is behind.
type Lag struct {
	Events   id.Index
	Received id.Instant // of the oldest event that is to come; 0: none
}

// LagOf returns how far a position is behind the organization's ledger.
func (f *Follower) LagOf(ctx context.Context, t id.Tenant, p Position) (Lag, error) {
	states, err := f.findStates(ctx, t, p.Origin)
	if err != nil {
		return Lag{}, err
	}
	next, lag := p.Next, Lag{}
	for i, s := range states {
		if i > 0 || s.Identity().Origin != p.Origin {
			next = 0
		}
		rest := sizeOf(s) - min(next, sizeOf(s))
		if lag.Events == 0 && rest > 0 {
			for e, err := range f.Ledgers.Events(ctx, s, next, next+1, storage.FieldColumns) {
				if err != nil {
					return Lag{}, fmt.Errorf("read events: %w", err)
				}
				lag.Received = e.ReceivedAt
			}
		}
		lag.Events += rest
	}
	return lag, nil
}

// Fence writes a position again as it is, so that the work for a batch that was read before writes nothing
// and comes again. It does nothing for a follower without a position.
func (f *Follower) Fence(ctx context.Context, t id.Tenant, name string) error {
	for {
		p, err := f.positions.Get(ctx, t, name)
		if err != nil || !p.Exists() {
			return err
		}
		change, err := f.positions.Put(p)
		if err == nil {
			err = f.Records.Write(ctx, t, []storage.Change{change})
		}
		if !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
}
