package policystore

import (
	"context"
	"runtime"
	"time"

	"github.com/agentledger/agentledger/fault"
)

// maxTime bounds the processor time of an evaluation. What a policy may cost is bounded by
// units (policy.MaxTotalCost), which are over after a fiftieth of it: this is for what is priced too
// low, and such an evaluation decides nothing.
const maxTime = 5 * time.Second

// patience is a context that ends with its parent, and after maxTime of the processor since it
// was first asked whether it has. So an evaluation that is soon done costs no look at a clock. It is
// for one goroutine, which it ties to its thread until release, because the kernel counts by
// thread. Nobody can wait for its end.
type patience struct {
	context.Context
	spent func() time.Duration // processor time of this thread
	begun bool
	base  time.Duration // what was spent when it was first asked
}

// Err implements context.Context.
func (p *patience) Err() error {
	if err := p.Context.Err(); err != nil {
		return err
	}
	if !p.begun {
		runtime.LockOSThread()
		p.begun, p.base = true, p.spent()
	}
	if p.spent()-p.base > maxTime {
		return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The policy takes too long to evaluate"}
	}
	return nil
}

// release unties the goroutine.
func (p *patience) release() {
	if p.begun {
		runtime.UnlockOSThread()
	}
}
