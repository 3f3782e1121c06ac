package approval

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/schedule"
)

// doubts is what Sweep has to look at beside what is due.
type doubts struct {
	mu      sync.Mutex
	tenants map[id.Tenant]struct{} // whose policy changed
	names   map[doubt]struct{}
}

type doubt struct {
	tenant id.Tenant
	name   ID
}

// maxDoubts bounds what is remembered; what is forgotten is stated when it is due.
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

// takeDoubts returns what is in doubt and forgets it.
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

// PolicyChanged says that another policy may be active: what was asked under the
// one before is invalid already, and Sweep states it.
func (a *Approvals) PolicyChanged(t id.Tenant) {
	a.doubts.mu.Lock()
	defer a.doubts.mu.Unlock()
	if len(a.doubts.tenants) < maxDoubts {
		a.doubts.tenants[t] = struct{}{}
	}
}

// Run sweeps each second until ctx ends, but not while Options.Held says why.
func (a *Approvals) Run(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if a.held() == nil {
			if err := a.Sweep(ctx); err != nil && ctx.Err() == nil {
				logger.Warn("approvals: what is over was not stated", "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Sweep states what is over: approvals whose time has come, those whose policy is
// not active any more. What can't be stated now is tried again a second later. What is
// in doubt becomes due, so that organizations take turns for it as for all that is due.
func (a *Approvals) Sweep(ctx context.Context) error {
	now := a.currentTime()
	failed := a.noteDoubts(ctx, now)
	if err := a.due.Sweep(ctx, a.currentTime, a.settleDue); err != nil {
		failed = errors.Join(failed, errUnreadable("settle what is due", err))
	}
	return failed
}

// noteDoubts makes due what is in doubt.
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
		if err := a.due.Note(ctx, entries...); err != nil {
			return errors.Join(failed, errUnreadable("note what is in doubt", err))
		}
	}
	return failed
}

// notedAtOnce is how many entries are noted by one write.
const notedAtOnce = 1000

// closedPause is when to look again at what can't be stated since its ledger takes no
// events, in milliseconds.
const closedPause id.Instant = 3_600_000

// settleDue settles an approval that may be over.
func (a *Approvals) settleDue(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
	err := a.settleApproval(ctx, e.Tenant, ID(e.Name))
	switch {
	case err == nil:
		return schedule.Done(), nil
	case fault.Is(err, fault.NotFound):
		return schedule.Absent(e, a.currentTime()), nil
	}
	switch fault.Of(err).Code {
	case "frozen", "moved", "read_only", clock.Code: // until somebody does something about it
		return schedule.Until(a.currentTime() + closedPause), nil
	}
	return schedule.Keep(), err
}
