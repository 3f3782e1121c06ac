package witness

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Asker is on whose behalf witnesses are asked at once.
type Asker int

const (
	// Owner runs the organization. Witnesses that all organizations share go on
	// resting, so that one organization can't have a witness asked that is away.
	Owner Asker = iota
	// Operator runs the service.
	Operator
)

// AskNow has the witnesses of a ledger asked as soon as a round may begin, and forgets
// what they refused about it. It returns the names of those who are asked, in the order
// of the policy in force, and does not wait for their answers (Standing has them).
//
// Example: a witness answered 404, and its operator says that it knows the log by now.
//
// fault.NotFound for an unknown tenant; fault.Overloaded when too many ledgers wait.
func (w *Witnesses) AskNow(ctx context.Context, t id.Tenant, by Asker) (names []string, err error) {
	wanted, err := w.Organizations.Witnessing(ctx, t)
	if err != nil {
		return nil, err
	}
	f, err := w.inForce(t, wanted)
	if err != nil || len(f.targets) == 0 {
		return nil, err
	}
	if err := w.forgive(ctx, t, f); err != nil {
		return nil, err
	}
	for _, e := range f.endpoints {
		if by == Operator || e.lane.label == ownLabel {
			e.lane.wake()
		}
	}
	if !w.agenda.add(t, w.Clock()) {
		return nil, &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: "Too many logs wait for their witnesses", RetryAfter: max(w.Interval, time.Second)}
	}
	for _, target := range f.targets {
		names = append(names, target.Name)
	}
	return names, nil
}

// forgive forgets what the witnesses refused about a ledger, if they did.
func (w *Witnesses) forgive(ctx context.Context, t id.Tenant, f *force) error {
	p, err := w.read(ctx, t)
	if err != nil || !p.forgive() {
		return err
	}
	return w.change(ctx, t, func(p *page) error {
		p.fit(f)
		p.forgive()
		return nil
	})
}
