package policystore

import (
	"context"
	"runtime"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// maxTime bounds the processor time of an evaluation. The cost of a policy is bounded by
// units (policy.MaxTotalCost), which last for a fiftieth of this time. The time bounds
// conditions that are priced too low, and such an evaluation decides nothing.
const maxTime = 5 * time.Second

// timeLimit is a context that ends with its parent, and after maxTime of the processor since it
// was first asked whether it has. So an evaluation that is soon done costs no look at a clock. It is
// for one goroutine, which it ties to its thread until release, because the kernel counts by
// thread. It has no Done channel.
type timeLimit struct {
	context.Context
	spent func() time.Duration // processor time of this thread
	begun bool
	base  time.Duration // time spent when it was first asked
}

// Err implements context.Context.
func (p *timeLimit) Err() error {
	if err := p.Context.Err(); err != nil {
		return err
	}
	if !p.begun {
		runtime.LockOSThread()
		p.begun, p.base = true, p.spent()
	}
	if p.spent()-p.base > maxTime {
		return &fault.Error{
			Kind:    fault.Unavailable,
			Code:    "unavailable",
			Message: "The policy takes too long to evaluate",
		}
	}
	return nil
}

// releaseThread unties the goroutine.
func (p *timeLimit) releaseThread() {
	if p.begun {
		runtime.UnlockOSThread()
	}
}
