package forward

import (
	"context"
	"errors"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
)

// Reasons for giving up an attempt.
var (
	errMoved = errors.New("the organization has another owner")
	errLate  = errors.New("the node did not respond in time")

	errSilent = errors.New("the node did not respond to a public read in time")
)

// watch ends an attempt if its node does not respond in time or has lost the organization. A request that may be
// repeated is then sent to the next owner at once, and a public read may be handled by this node. The caller must call
// stop at the start of the response.
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

// watchOwner returns the reason for giving up the attempt, or nil if ctx ends first.
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

// endMoved gives a node that lost the organization some time to report the outcome of a request with effects.
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

// timeLeft returns how long to wait for the response.
func (x *passage) timeLeft() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.until.IsZero() {
		return longest
	}
	return time.Until(x.until)
}
