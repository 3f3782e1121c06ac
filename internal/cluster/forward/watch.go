package forward

import (
	"context"
	"errors"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
)

// Why an attempt is given up.
var (
	errMoved = errors.New("the organization has another owner")
	errLate  = errors.New("the node did not answer in time")

	errSilent = errors.New("the node did not answer a public read soon")
)

// watch ends an attempt whose node does not answer in time, or has lost the organization. A request that may be
// repeated goes to the next owner at once, and a public read may be answered by this node. The caller calls stop at the
// begin of the answer.
func (x *passage) watch(ctx context.Context, cancel context.CancelCauseFunc, to cluster.Node) (stop func()) {
	if x.public {
		timer := time.AfterFunc(x.proxy.timing.silent, func() { cancel(errSilent) })
		return func() { timer.Stop() }
	}
	watched, stopWatch := context.WithCancel(ctx)
	timer := time.AfterFunc(x.proxy.timing.doubt, func() {
		if err := x.watchOwner(watched, to); err != nil {
			cancel(err)
		}
	})
	return func() {
		timer.Stop()
		stopWatch()
	}
}

// watchOwner returns why the attempt is to be given up, nil when ctx ended before.
func (x *passage) watchOwner(ctx context.Context, to cluster.Node) error {
	for {
		owner := x.proxy.view.Owner(x.tenant)
		if owner.Node.ID != to.ID {
			return x.endMoved(ctx)
		}
		left := x.timeLeft()
		if left <= 0 {
			return errLate
		}
		timer := time.NewTimer(left)
		select {
		case <-owner.Changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return nil
		}
	}
}

// endMoved leaves a node that lost the organization the time to tell the outcome of a request with effects.
func (x *passage) endMoved(ctx context.Context) error {
	if x.repeatable {
		return errMoved
	}
	timer := time.NewTimer(x.proxy.timing.moved)
	defer timer.Stop()
	select {
	case <-timer.C:
		return errMoved
	case <-ctx.Done():
		return nil
	}
}

// timeLeft is for how long the answer may still be waited for.
func (x *passage) timeLeft() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.until.IsZero() {
		return longest
	}
	return time.Until(x.until)
}
