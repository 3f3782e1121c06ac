package witness

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
)

// Asker is the role that requests a round at once.
type Asker int

const (
	// Owner is an owner of the organization. Pauses of shared witnesses continue, so that one organization cannot
	// cause requests to a witness that is down.
	Owner Asker = iota
	// Operator is the operator of the service.
	Operator
)

// AskNow queues a round of a ledger as soon as possible, and clears the rejections of its witnesses. Use it, for
// example, after a witness responded with 404 and its operator has added the log. It returns the names of the
// witnesses in the order of the current policy, without waiting for their responses (see Status).
//
// It returns fault.NotFound for an unknown tenant, and fault.Overloaded if too many ledgers are waiting.
func (w *Witnesses) AskNow(ctx context.Context, t id.Tenant, by Asker) (names []string, err error) {
	setting, err := w.Organizations.Witnessing(ctx, t)
	if err != nil {
		return nil, err
	}
	f, err := w.currentPolicy(t, setting)
	if err != nil || len(f.targets) == 0 {
		return nil, err
	}
	if err := w.forgiveRefusals(ctx, t, f); err != nil {
		return nil, err
	}
	for _, e := range f.endpoints {
		if by == Operator || e.breaker.label == ownLabel {
			e.breaker.endRestEarly()
		}
	}
	if !w.queue.enqueueMoved(t, w.Clock()) {
		return nil, &fault.Error{
			Kind: fault.Overloaded, Code: "overloaded",
			Message: "Too many logs wait for their witnesses", RetryAfter: max(w.Interval, time.Second),
		}
	}
	for _, target := range f.targets {
		names = append(names, target.Name)
	}
	return names, nil
}

// forgiveRefusals clears the rejections of a ledger, if there are any.
func (w *Witnesses) forgiveRefusals(ctx context.Context, t id.Tenant, f *activePolicy) error {
	p, err := w.readRecord(ctx, t)
	if err != nil || !p.clearRefusals() {
		return err
	}
	return w.changeRecord(ctx, t, func(p *ledgerRecord) error {
		p.applyPolicy(f)
		p.clearRefusals()
		return nil
	})
}
