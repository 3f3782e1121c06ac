package workflow

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
)

// Run calls Sweep each second until ctx ends, except while Options.Held returns an error.
func (w *Workflows) Run(ctx context.Context, logger *slog.Logger) {
	schedule.Every(ctx, w.held, w.Sweep, func(err error) { logger.Warn("workflows: abandoned runs not recorded", "err", err) })
}

// Sweep records which runs are abandoned. If a record cannot be written, Sweep retries it a second later. Organizations
// take turns (package schedule).
func (w *Workflows) Sweep(ctx context.Context) error {
	return w.due.Sweep(ctx, w.currentTime, w.endIfSilent)
}

// endIfSilent ends a run if it has been silent for too long.
func (w *Workflows) endIfSilent(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
	outcome, silent, err := w.examineSilence(ctx, e)
	if err != nil || !silent {
		return outcome, err
	}
	err = w.abandonRun(ctx, e.Tenant, ID(e.Name))
	if isLedgerClosed(err) {
		return schedule.Until(w.currentTime() + closedPause), nil
	}
	if err != nil {
		return outcome, err
	}
	if outcome, silent, err = w.examineSilence(ctx, e); silent { // it was not abandoned, and there is no error
		return schedule.Failed(w.currentTime()), err
	}
	return outcome, err
}

// examineSilence reports whether a run has been silent for too long, and otherwise returns the outcome of its entry. If
// a step was reported since, the entry is postponed.
func (w *Workflows) examineSilence(
	ctx context.Context, e schedule.Entry,
) (outcome schedule.Outcome, silent bool, err error) {
	r, err := w.readRun(ctx, e.Tenant, ID(e.Name))
	switch {
	case fault.Is(err, fault.NotFound):
		return schedule.Absent(e, w.currentTime()), false, nil
	case err != nil:
		return schedule.Keep(), false, err
	case r.Value.Status != Running:
		return schedule.Done(), false, nil
	case r.Value.nextDeadline() > w.currentTime():
		return schedule.Until(r.Value.nextDeadline()), false, nil
	}
	return schedule.Keep(), true, nil
}

// closedPause is the time in milliseconds until the next attempt for a ledger that accepts no events.
const closedPause id.Instant = 3_600_000

// isLedgerClosed reports whether a ledger rejects events until an operator acts.
func isLedgerClosed(err error) bool {
	if err == nil {
		return false
	}
	switch fault.Of(err).Code {
	case "frozen", "moved", "read_only", "held", clock.Code:
		return true
	}
	return false
}

// abandonRun ends a run if it is still silent.
func (w *Workflows) abandonRun(ctx context.Context, t id.Tenant, name ID) error {
	leave, err := w.lanes.Lock(ctx, place{t, name})
	if err != nil {
		return err
	}
	defer leave()
	var r records.Versioned[record]
	landed, err := w.appendStatement(ctx, t, sysevent.Operator,
		func(ctx context.Context, s *log.State) (act sysevent.Change, err error) {
			if r, err = w.readRun(ctx, t, name); err != nil {
				return act, err
			}
			if r.Value.Status != Running || r.Value.statusAt(w.currentTime()) != Abandoned {
				return act, nil
			}
			return w.prepareEnding(ctx, s, name, &r, Abandoned)
		})
	if err != nil {
		return fmt.Errorf("abandon run: %w", err)
	}
	if landed {
		w.known.Delete(place{t, name})
		w.metrics.ended[Abandoned].Inc()
	}
	return nil
}
