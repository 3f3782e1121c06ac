package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const (
	// idlePause is the time until the next look at a follower without new events, unless its ledger changes.
	idlePause = time.Minute
	// awayPause is the time until the next look at a ledger that is not followed in this store.
	awayPause = 10 * time.Minute
)

// retryPauses returns the pauses between attempts after failures. The last one repeats.
func retryPauses() []time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour}
}

// errAway means that the ledger is not followed in this store.
var errAway = errors.New("this node does not follow the ledger")

// look is one look at a follower, because its entry is due or because its ledger changed.
type look struct {
	*Follower
	unit
	entry  *schedule.Entry // nil if the ledger changed
	forced bool            // even in a pause after a failure
}

// run processes the follower and settles its entry.
func (l *look) run(ctx context.Context) error {
	outcome, err := l.doTurn(ctx)
	switch {
	case errors.Is(err, storage.ErrStale): // a user moved the position
		outcome, err = schedule.Failed(l.currentTime()), nil
		l.Wake(l.tenant, l.name)
	case errors.Is(err, errAway):
		outcome, err = schedule.Until(l.currentTime()+id.Instant(awayPause.Milliseconds())), nil
	case ctx.Err() != nil:
		return nil
	case err != nil && l.All != nil:
		l.postpone()
	case err != nil:
		outcome = schedule.Until(l.currentTime() + id.Instant(retryPauses()[1].Milliseconds()))
	}
	if l.entry == nil {
		return err
	}
	return errors.Join(err, l.due.Settle(ctx, *l.entry, outcome))
}

// postpone adds the follower to the queue after a pause.
func (l *look) postpone() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.later[l.unit] = l.currentTime() + id.Instant(failurePause.Milliseconds())
}

// isEarly reports whether the ledger has not grown enough since the last look.
func (l *look) isEarly(ctx context.Context) (bool, error) {
	at, known := l.ahead.Get(l.unit)
	if !known || l.forced {
		return false, nil
	}
	s, err := l.Ledgers.State(ctx, l.tenant)
	return err == nil && s.Size() < at, err
}

// Step processes the next batch of a follower now and reports whether there is more work. No look at this follower may
// be in flight.
func (f *Follower) Step(ctx context.Context, t id.Tenant, name string) (more bool, err error) {
	l := &look{Follower: f, unit: unit{t, name}, forced: true}
	stored, err := l.positions.Get(ctx, t, name)
	if err != nil {
		return false, err
	}
	if more, err = l.doBatch(ctx, stored, false); errors.Is(err, errAway) {
		return false, nil
	}
	return more, err
}

// doTurn processes at most Options.Turn batches.
func (l *look) doTurn(ctx context.Context) (schedule.Outcome, error) {
	if early, err := l.isEarly(ctx); early || err != nil {
		return schedule.Done(), err
	}
	for n := 1; ; n++ {
		stored, err := l.positions.Get(ctx, l.tenant, l.name)
		if err != nil {
			return schedule.Keep(), err
		}
		if l.All == nil {
			if outcome, over := l.checkPosition(stored); over && n == 1 || !stored.Exists() {
				return outcome, nil
			}
		}
		if !l.share.Owned(l.tenant) {
			return schedule.Keep(), nil
		}
		more, err := l.doBatch(ctx, stored, n == l.Turn)
		if err != nil || !more {
			return schedule.Done(), err
		}
		if n == l.Turn {
			l.Wake(l.tenant, l.name)
			l.slots.NoteBacklog()
			return schedule.Done(), nil
		}
	}
}

// checkPosition reports whether a position needs no work now, and the outcome of the entry in that case.
func (l *look) checkPosition(p records.Versioned[Position]) (outcome schedule.Outcome, over bool) {
	switch {
	case !p.Exists() && l.entry != nil:
		l.forget(l.unit)
		return schedule.Absent(*l.entry, l.currentTime()), true
	case !p.Exists():
		l.forget(l.unit)
		return schedule.Done(), true
	case l.entry != nil:
		return schedule.Done(), p.Value.NextAt > l.entry.At // it has another entry
	}
	return schedule.Done(), !l.forced && p.Value.Tries > 0 && p.Value.NextAt > l.currentTime()
}

// doBatch processes one batch and writes the new position. It reports whether there is more work now.
func (l *look) doBatch(ctx context.Context, stored records.Versioned[Position], last bool) (more bool, err error) {
	b, err := l.readBatch(ctx, l.unit, stored.Value)
	if err != nil {
		return false, err
	}
	if level := b.State.Fault().Level; level == log.Importing || level == log.Moved {
		return false, errAway
	}
	result, err := l.Work(ctx, b)
	if err != nil {
		return false, err
	}
	if result.End {
		l.forget(l.unit)
		removal := storage.Change{Kind: l.Positions, Key: l.name, If: stored.Version}
		return false, l.Records.Write(ctx, l.tenant, append(result.Changes, removal))
	}
	more = !result.Failed && result.Pause == 0 && (b.More || result.More || result.Next != b.After)
	if l.All != nil && !more {
		l.ahead.Put(l.unit, result.Next.Next+l.Least)
	}
	p := l.advance(stored.Value, result, more && !last)
	l.setFailing(result.Failed)
	if p == stored.Value && len(result.Changes) == 0 {
		return more, nil
	}
	return more, l.writePosition(ctx, stored, p, result.Changes)
}

// advance returns the position after a batch. If continues is set, the next batch follows immediately, and the present
// entry is kept until then.
func (l *look) advance(p Position, r Result, continues bool) Position {
	now := l.currentTime()
	p.Cursor, p.Note = r.Next, r.Note
	if r.Failed {
		if p.Tries == 0 {
			p.FailingSince = now
		}
		p.Tries++
		plan := retryPauses()
		pause := max(plan[min(p.Tries, len(plan))-1], r.Pause)
		pause += time.Duration(rand.Int64N(int64(pause)/5 + 1))
		p.NextAt = now + id.Instant(pause.Milliseconds())
		return p
	}
	p.Tries, p.FailingSince = 0, 0
	latest := now + id.Instant(cmp.Or(r.Pause, idlePause).Milliseconds())
	if l.All == nil && !continues && (p.NextAt <= now || p.NextAt > latest || l.entry != nil && p.NextAt <= l.entry.At) {
		p.NextAt = latest
	}
	return p
}

// writePosition writes a position together with the results of the work. The due entry is written first.
func (l *look) writePosition(
	ctx context.Context, stored records.Versioned[Position], p Position, changes []storage.Change,
) error {
	if l.All == nil && p.NextAt != stored.Value.NextAt {
		if err := l.noteDue(ctx, l.unit, p); err != nil {
			return err
		}
	}
	stored.Value = p
	change, err := l.positions.Put(stored)
	if err != nil {
		return err
	}
	if err := l.Records.Write(ctx, l.tenant, append(changes, change)); err != nil {
		return fmt.Errorf("write position: %w", err)
	}
	return nil
}
