package forward

import (
	"errors"
	"sync/atomic"

	"github.com/agentledger/agentledger/fault"
)

// Counts is how the requests ended that a node has passed since its start. Not counted are requests whose body did not
// arrive, those of an organization that this node got meanwhile, and public reads that it answers for an owner that is
// gone.
type Counts struct {
	Answered       uint64 // with any status
	NoOwner        uint64 // no owner could be reached: nothing was sent
	OutcomeUnknown uint64 // the owner did not answer a request with effects
	Cut            uint64 // the owner ended within its answer
}

// counters are Counts that rise.
type counters struct{ answered, noOwner, unknown, cut atomic.Uint64 }

// Counts returns how the requests ended until now.
func (p *Proxy) Counts() Counts {
	c := &p.counters
	return Counts{Answered: c.answered.Load(), NoOwner: c.noOwner.Load(), OutcomeUnknown: c.unknown.Load(),
		Cut: c.cut.Load()}
}

// countEnd counts the end of a request by the results of Pass.
func (c *counters) countEnd(passed bool, err error) {
	switch {
	case errors.Is(err, errCut):
		c.cut.Add(1)
	case fault.Is(err, fault.OutcomeUnknown):
		c.unknown.Add(1)
	case fault.Is(err, fault.Overloaded):
		c.noOwner.Add(1)
	case passed && err == nil:
		c.answered.Add(1)
	}
}
