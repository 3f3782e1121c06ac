package erasure

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// The pauses before the next attempt, in milliseconds.
const (
	holdPause   id.Instant = 60_000
	lagPause    id.Instant = 1000
	closedPause id.Instant = 3_600_000 // for a ledger that accepts no events
)

// errObjects means that archived objects still contain erased envelopes.
var errObjects = errors.New("the archive has not applied the erasure yet")

// errLag means that the events are not yet indexed.
var errLag = errors.New("the index has not applied the erasure yet")

// Run calls Sweep each second, and again as long as there is more to do, until ctx ends. It pauses while Options.Held
// returns an error.
func (e *Erasures) Run(ctx context.Context, logger *slog.Logger) {
	report := func(err error) { logger.Warn("erasures: a due erasure failed", "err", err) }
	sweepAll := func(ctx context.Context) error {
		for ctx.Err() == nil && e.Held() == nil {
			more, err := e.Sweep(ctx)
			if !more {
				return err
			}
			if err != nil && ctx.Err() == nil {
				report(err)
			}
		}
		return nil
	}
	schedule.Every(ctx, nil, sweepAll, report)
}

// Sweep makes one append for each organization with due erasures, and reports whether there may be more to do at once.
func (e *Erasures) Sweep(ctx context.Context) (more bool, err error) {
	w := &sweep{Erasures: e, served: make(map[id.Tenant]struct{})}
	err = e.due.Sweep(ctx, e.currentTime, w.handleEntry)
	if err != nil {
		err = errUnreadable("sweep erasures", err)
	}
	return w.more, err
}

// sweep is one pass over the due entries.
type sweep struct {
	*Erasures
	served map[id.Tenant]struct{} // organizations that had their append
	more   bool
}

// handleEntry does one step of an erasure or of a retention.
func (w *sweep) handleEntry(ctx context.Context, entry schedule.Entry) (schedule.Outcome, error) {
	if _, served := w.served[entry.Tenant]; served {
		w.more = true
		return schedule.OrganizationFull(), nil
	}
	if entry.Name == retentionName {
		return w.runRetention(ctx, entry)
	}
	r, err := w.erasures.Get(ctx, entry.Tenant, records.ReverseKey(entry.Name))
	switch {
	case err != nil:
		return schedule.Keep(), err
	case !r.Exists():
		return schedule.Absent(entry, w.currentTime()), nil
	case r.Value.Phase == phaseDone:
		return schedule.Done(), nil
	}
	w.served[entry.Tenant] = struct{}{}
	err = w.step(ctx, entry.Tenant, &r)
	if err == nil {
		w.more = true
		if r.Value.Phase == phaseDone {
			return schedule.Done(), nil
		}
		return schedule.Until(w.currentTime()), nil
	}
	if fault.Of(err).Code == holdCode {
		return schedule.Until(w.currentTime() + holdPause), w.noteHold(ctx, entry.Tenant, &r)
	}
	return w.postpone(err)
}

// postpone returns when to try again after an error.
func (w *sweep) postpone(err error) (schedule.Outcome, error) {
	switch fault.Of(err).Code {
	case "frozen", "moved", "read_only", "held", clock.Code: // until an operator acts
		return schedule.Until(w.currentTime() + closedPause), nil
	}
	// ErrStale: a record was changed concurrently, for example by a new erasure.
	if errors.Is(err, errLag) || errors.Is(err, errObjects) || errors.Is(err, storage.ErrStale) {
		return schedule.Until(w.currentTime() + lagPause), nil
	}
	return schedule.Keep(), err
}

// noteHold records that an erasure waits for the end of a legal hold.
func (w *sweep) noteHold(ctx context.Context, t id.Tenant, r *records.Versioned[record]) error {
	stored, err := w.erasures.Get(ctx, t, r.Key)
	if err != nil || stored.Value.Held {
		return err
	}
	stored.Value.Held = true
	change, err := w.erasures.Put(stored)
	if err != nil {
		return err
	}
	return w.write(ctx, t, change)
}

// write writes records that no event states.
func (e *Erasures) write(ctx context.Context, t id.Tenant, changes ...storage.Change) error {
	if err := e.Records.Write(ctx, t, changes); err != nil {
		return errUnreadable("write progress of erasure", err)
	}
	return nil
}

// step does the next step of an erasure and updates its record. If it returns an error, nothing was done, unless the
// outcome is unknown.
func (e *Erasures) step(ctx context.Context, t id.Tenant, r *records.Versioned[record]) error {
	s, err := e.Ledgers.State(ctx, t)
	if err == nil {
		err = e.checkHold(ctx, s)
	}
	if err != nil {
		return err
	}
	r.Value.Held = false
	switch r.Value.Phase {
	case phaseApprovals:
		return e.eraseApprovals(ctx, t, s, r)
	case phaseEvents:
		return e.eraseEvents(ctx, t, s, r)
	}
	return e.finish(ctx, t, r)
}

// finish removes the erased texts from the deliveries and ends an erasure.
func (e *Erasures) finish(ctx context.Context, t id.Tenant, r *records.Versioned[record]) error {
	v := &r.Value
	if v.Erased+v.Approvals > 0 && !v.TextsGone {
		changed, err := e.eraseUnsent(ctx, t)
		if err != nil {
			return err
		}
		v.Texts += uint64(changed)
	}
	if err := e.checkCopies(ctx, t, r); err != nil {
		return err
	}
	tally, err := e.tallies.Get(ctx, t, "")
	if err != nil {
		return err
	}
	tally.Value.Open--
	counted, err := e.tallies.Put(tally)
	if err != nil {
		return err
	}
	forget := v.Principal != "" || v.Subject != ""
	v.Phase, v.Principal, v.Subject, v.Issuer, v.EndedAt = phaseDone, "", "", "", e.currentTime()
	ended, err := e.erasures.Put(*r)
	if err != nil {
		return err
	}
	ended.Forget = forget
	return e.write(ctx, t, counted, ended)
}

// checkCopies returns errObjects or errLag while the archive or the index still contains erased envelopes. The texts are
// gone from the deliveries then, which the record says, so that they are removed and counted once.
func (e *Erasures) checkCopies(ctx context.Context, t id.Tenant, r *records.Versioned[record]) error {
	err := e.checkObjects(ctx, t)
	if err == nil {
		err = e.checkValues(ctx, t)
	}
	if waits := errors.Is(err, errObjects) || errors.Is(err, errLag); !waits || r.Value.TextsGone {
		return err
	}
	r.Value.TextsGone = true
	change, failed := e.erasures.Put(*r)
	if failed == nil {
		failed = e.write(ctx, t, change)
	}
	return cmp.Or(failed, err)
}

// checkValues returns errLag while the index contains values of erased envelopes.
func (e *Erasures) checkValues(ctx context.Context, t id.Tenant) error {
	waiting, err := e.Index.ErasuresWaiting(ctx, t)
	if err == nil && waiting {
		err = errLag
	}
	return err
}

// checkObjects returns errObjects while the archive still contains erased envelopes of the organization.
func (e *Erasures) checkObjects(ctx context.Context, t id.Tenant) error {
	if e.Archive == nil {
		return nil
	}
	waiting, err := e.Archive.ErasuresWaiting(ctx, t)
	if err != nil {
		return errUnreadable("read the archive", err)
	}
	if waiting {
		return errObjects
	}
	return nil
}
