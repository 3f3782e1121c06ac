package forward

import (
	"errors"
	"sync/atomic"

	"github.com/agentledger/agentledger/fault"
)

// Counts contains the results of the requests that a node has passed since its start. Requests are not counted if their
// body never arrived, if this node acquired the organization in the meantime, or if they are public reads that this
// node answered because the owner was gone.
type Counts struct {
	Answered       uint64 // with any status
	NoOwner        uint64 // no owner could be reached; nothing was sent
	OutcomeUnknown uint64 // the owner did not respond to a request with effects
	Cut            uint64 // the owner's response was cut off
}

// counters are the current Counts.
type counters struct{ answered, noOwner, unknown, cut atomic.Uint64 }

// Counts returns the results of the requests until now.
func (p *Proxy) Counts() Counts {
	c := &p.counters
	return Counts{Answered: c.answered.Load(), NoOwner: c.noOwner.Load(), OutcomeUnknown: c.unknown.Load(),
		Cut: c.cut.Load()}
}

// countEnd counts a request by the results of Pass.
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
