package policystore

import (
	"context"
	"runtime"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// maxTime bounds the processor time of an evaluation. The cost of a policy is limited in units (policy.MaxTotalCost),
// which take about a fiftieth of this time. The time bounds conditions whose cost is underestimated; such an
// evaluation decides nothing.
const maxTime = 5 * time.Second

// timeLimit is a context that ends with its parent, and when maxTime of processor time has passed since the first
// call of Err. So a short evaluation never reads a clock. It must be used by one goroutine, which it locks to its
// thread until releaseThread, because the kernel counts per thread. It has no Done channel.
type timeLimit struct {
	context.Context
	spent   func() time.Duration // processor time of the thread
	started bool
	base    time.Duration // processor time at the first call of Err
}

// Err implements context.Context.
func (p *timeLimit) Err() error {
	if err := p.Context.Err(); err != nil {
		return err
	}
	if !p.started {
		runtime.LockOSThread()
		p.started, p.base = true, p.spent()
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

// releaseThread unlocks the goroutine from its thread.
func (p *timeLimit) releaseThread() {
	if p.started {
		runtime.UnlockOSThread()
	}
}
