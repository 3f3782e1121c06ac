package approval

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/storage"
)

// doubts are the approvals and organizations that Sweep examines in addition to the due ones.
type doubts struct {
	mu      sync.Mutex
	tenants map[id.Tenant]struct{} // whose policy changed
	names   map[doubt]struct{}
}

type doubt struct {
	tenant id.Tenant
	name   ID
}

// maxDoubts bounds the doubts. Approvals beyond it are settled when they are due.
const maxDoubts = 10_000

func newDoubts() doubts {
	return doubts{tenants: make(map[id.Tenant]struct{}), names: make(map[doubt]struct{})}
}

func (d *doubts) addDoubt(t id.Tenant, name ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.names) < maxDoubts {
		d.names[doubt{t, name}] = struct{}{}
	}
}

// takeDoubts returns the doubts and clears them.
func (d *doubts) takeDoubts() (tenants []id.Tenant, names []doubt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for t := range d.tenants {
		tenants = append(tenants, t)
	}
	for n := range d.names {
		names = append(names, n)
	}
	clear(d.tenants)
	clear(d.names)
	return tenants, names
}

// PolicyChanged reports that another policy may be active. Approvals that it does not ask for are already invalid, and
// Sweep records that.
func (a *Approvals) PolicyChanged(t id.Tenant) {
	a.doubts.mu.Lock()
	defer a.doubts.mu.Unlock()
	if len(a.doubts.tenants) < maxDoubts {
		a.doubts.tenants[t] = struct{}{}
	}
}

// Run calls Sweep each second until ctx ends, except while Options.Held returns an error.
func (a *Approvals) Run(ctx context.Context, logger *slog.Logger) {
	schedule.Every(ctx, a.held, a.Sweep, func(err error) { logger.Warn("approvals: due changes not recorded", "err", err) })
}

// Sweep records the end of approvals that have expired or whose policy is no longer active. If a record cannot be
// written, Sweep retries it a second later. Doubts become due entries, so that organizations take turns for them as for
// all due entries.
func (a *Approvals) Sweep(ctx context.Context) error {
	now := a.currentTime()
	failed := a.noteDoubts(ctx, now)
	if err := a.due.Sweep(ctx, a.currentTime, a.settleDue); err != nil {
		failed = errors.Join(failed, errUnreadable("settle what is due", err))
	}
	return failed
}

// noteDoubts turns doubts into due entries.
func (a *Approvals) noteDoubts(ctx context.Context, now id.Instant) (failed error) {
	tenants, names := a.doubts.takeDoubts()
	for _, t := range tenants {
		open, err := a.openNames(ctx, t)
		failed = errors.Join(failed, err)
		for _, name := range open {
			names = append(names, doubt{t, name})
		}
	}
	for some := range slices.Chunk(names, notedAtOnce) {
		entries := make([]schedule.Entry, len(some))
		for i, n := range some {
			entries[i] = schedule.Entry{At: now, Tenant: n.tenant, Name: string(n.name)}
		}
		if err := a.due.NoteEntries(ctx, entries...); err != nil {
			return errors.Join(failed, errUnreadable("note what is in doubt", err))
		}
	}
	return failed
}

// notedAtOnce is the number of entries per write.
const notedAtOnce = 1000

// closedPause is the time in milliseconds until the next attempt for a ledger that accepts no events.
const closedPause id.Instant = 3_600_000

// settleDue settles an approval that may have ended, or whose voters must be reminded.
func (a *Approvals) settleDue(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
	err := a.settleApproval(ctx, e.Tenant, ID(e.Name))
	if err == nil {
		err = a.remind(ctx, e.Tenant, ID(e.Name))
	}
	switch {
	case err == nil:
		return schedule.Done(), nil
	case fault.Is(err, fault.NotFound):
		return schedule.Absent(e, a.currentTime()), nil
	}
	if errors.Is(err, storage.ErrStale) { // a vote or another question was written in the meantime
		return schedule.Until(a.currentTime() + 1000), nil
	}
	switch fault.Of(err).Code {
	case "frozen", "moved", "read_only", "held", clock.Code: // until an operator acts
		return schedule.Until(a.currentTime() + closedPause), nil
	}
	return schedule.Keep(), err
}
