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

// End returns the cursor after the latest event of a ledger.
func End(s *log.State) Cursor { return Cursor{Origin: s.Identity().Origin, Next: s.Size()} }

// Position returns a position. It does not exist if the organization has no such follower.
func (f *Follower) Position(ctx context.Context, t id.Tenant, name string) (records.Versioned[Position], error) {
	return f.positions.Get(ctx, t, name)
}

// Begin returns the change that makes a follower continue at a cursor immediately, on the condition that its position
// has not changed since it was read. The change must be written together with its cause. Begin writes the due entry,
// which does no harm without its position.
func (f *Follower) Begin(
	ctx context.Context, t id.Tenant, p records.Versioned[Position], at Cursor,
) (storage.Change, error) {
	p.Value = Position{Cursor: at, NextAt: f.currentTime()}
	if err := f.noteDue(ctx, unit{t, p.Key}, p.Value); err != nil {
		return storage.Change{}, err
	}
	return f.positions.Put(p)
}

// Remove returns the change that deletes a follower.
func (f *Follower) Remove(name string) storage.Change {
	return storage.Change{Kind: f.Positions, Key: name, If: storage.AnyVersion}
}

// Wake causes a look at a follower within a second, unless it pauses after a failure.
func (f *Follower) Wake(t id.Tenant, name string) { f.wake(unit{t, name}, false) }

// WakeNow is Wake, but also ends a pause.
func (f *Follower) WakeNow(t id.Tenant, name string) { f.wake(unit{t, name}, true) }

func (f *Follower) wake(u unit, force bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addKnown(u)
	f.queue.addWaiting(u, force, f.currentTime())
}

// SetNote returns the change that replaces the note of a position, on the condition that the position has not changed
// since it was read. The change must be written together with its cause.
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

// addKnown records a follower, so that it is woken if its ledger changes. The caller must hold f.mu.
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

// ServiceRecords returns the due entry of a position. Code that copies an organization uses it. A missing entry does no
// harm.
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
	Received id.Instant // time of the oldest event that is not processed; 0 if none
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
		rest := provableSize(s) - min(next, provableSize(s))
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

// Fence writes a position again without a change, so that work in flight writes nothing and is repeated. It does
// nothing for a follower without a position.
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
