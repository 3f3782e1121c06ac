package log

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// kindReverified is the record of how far a ledger has been re-verified.
const kindReverified storage.Kind = "ledger_reverified"

// Reverified says how far a ledger has been re-verified from the store itself.
type Reverified struct {
	To    id.Index   `json:"to"`    // the events [0, To) were found in order
	Root  id.Hash    `json:"root"`  // of the tree at To
	At    id.Instant `json:"at"`    // when To was reached
	Since id.Instant `json:"since"` // when the first event was last looked at
}

// Reverified returns how far the ledger has been re-verified; the zero value
// when it never was.
func (l *Ledgers) Reverified(ctx context.Context, t id.Tenant) (Reverified, error) {
	var v Reverified
	err := l.ownRecord(ctx, t, kindReverified, &v)
	if errors.Is(err, storage.ErrNotFound) {
		return Reverified{}, nil
	}
	return v, storeError("read re-verification", err)
}

// How the background re-verification spends its time.
const (
	reverifyChunk = 512            // events checked before a pause
	reverifyRest  = 9              // rest for nine times as long as was worked
	reverifyFresh = 24 * time.Hour // how old a whole pass may be before the next begins at the first event
)

// Reverify goes through all ledgers of the store again and again, with a pause
// of every between the rounds, until ctx ends. It takes about a tenth of one core.
func (l *Ledgers) Reverify(ctx context.Context, every time.Duration) {
	for ctx.Err() == nil {
		if err := l.reverifyAll(ctx); err != nil && ctx.Err() == nil {
			l.logger.Error("re-verification stopped early", "err", err)
		}
		pause(ctx, every)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// reverifyAll is one round. A ledger that can't be read does not keep the others
// from their turn.
func (l *Ledgers) reverifyAll(ctx context.Context) error {
	round := newRound()
	for t, err := range l.store.Tenants(ctx) {
		if err != nil || ctx.Err() != nil {
			return err
		}
		done, err := l.reverifyOne(ctx, t)
		if err != nil && ctx.Err() == nil {
			l.logger.Error("ledger not re-verified", "tenant", t, "err", err)
		}
		round.add(done, l.faultLevel(ctx, t))
	}
	l.metrics.round.set(round, l.clock())
	return nil
}

// reverifyOne brings one ledger's re-verification up to its published state.
// It does not load a ledger that has nothing new.
func (l *Ledgers) reverifyOne(ctx context.Context, t id.Tenant) (Reverified, error) {
	done, err := l.Reverified(ctx, t)
	if err != nil && !isDamage(err) {
		return done, err
	}
	now := id.InstantOf(l.clock())
	stale := err != nil || now.Time().Sub(done.Since.Time()) > reverifyFresh
	head, err := l.store.Head(ctx, t)
	if err != nil && !isDamage(err) {
		return done, storeError("re-verify", err)
	}
	if err == nil && (head.Size == 0 || head.Size == done.To && !stale) {
		return done, nil
	}
	led, err := l.ledger(ctx, t)
	if err != nil {
		return done, err
	}
	begin := done
	if stale {
		begin = Reverified{Since: now}
	}
	if err := l.reverifyLedger(ctx, led, begin); err != nil {
		return done, err
	}
	return l.Reverified(ctx, t)
}

func (l *Ledgers) reverifyLedger(ctx context.Context, led *ledger, done Reverified) error {
	s := led.published.Load()
	if s.fault.Level == Frozen {
		return nil
	}
	x := newExaminer(l.store, newInspector(1), s.identity, s.head, func(f Finding) {
		l.mark(ctx, led, f.Level, f.Place+": "+f.Problem)
	})
	err := x.resume(ctx, done.To, done.Root)
	if isDamage(err) { // behind the position, or of the position itself: a whole pass tells
		l.logger.Error("re-verification begins anew", "origin", s.identity.Origin, "position", done.To, "err", err)
		done, err = Reverified{Since: id.InstantOf(l.clock())}, nil
	}
	if err == nil {
		err = l.examine(ctx, x, s.Size())
	}
	if errors.Is(err, errExamined) {
		return nil
	}
	if err != nil {
		return storeError("re-verify", err)
	}
	return l.reverifiedTo(ctx, x, done)
}

// examine goes up to end, or as far as ctx lets it, with pauses.
func (l *Ledgers) examine(ctx context.Context, x *examiner, end id.Index) error {
	for x.tree.Size() < end {
		if ctx.Err() != nil {
			return nil
		}
		began := l.clock()
		before := x.tree.Size()
		if err := x.advance(ctx, min(before+reverifyChunk, end)); err != nil {
			return err
		}
		l.metrics.verified.Add(float64(x.tree.Size() - before))
		pause(ctx, reverifyRest*l.clock().Sub(began))
	}
	return x.atHead(ctx)
}

// reverifiedTo stores the position, unless something was wrong before it.
func (l *Ledgers) reverifiedTo(ctx context.Context, x *examiner, done Reverified) error {
	if x.wrong {
		return nil
	}
	value, err := json.Marshal(Reverified{To: x.tree.Size(), Root: x.tree.Root(), At: id.InstantOf(l.clock()), Since: done.Since})
	if err != nil {
		return fmt.Errorf("store re-verification: %w", err)
	}
	change := storage.Change{Kind: kindReverified, Value: value, If: storage.AnyVersion}
	return storeError("store re-verification", l.store.Write(context.WithoutCancel(ctx), x.identity.Tenant, []storage.Change{change}))
}
