package eventlist

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
)

// maxPredecessors bounds the search for a log.
const maxPredecessors = 64

// line is the log of a query, among the successive logs of an organization.
type line struct {
	tenant      id.Tenant
	predecessor *wire.Predecessor // nil if it is the first log
}

// openLine returns the log with the origin in the query, or the current log. It returns fault.NotFound if the
// organization has no such log.
func (r *Reader) openLine(ctx context.Context, a Asked) (line, error) {
	s, err := r.Ledgers.State(ctx, a.Tenant)
	if err != nil {
		return line{}, err
	}
	for origin, n := id.Origin(a.Values.Get("log")), 0; ; n++ {
		before, err := r.Ledgers.Predecessor(ctx, s)
		if err != nil {
			return line{}, err
		}
		if origin == "" || origin == s.Identity().Origin {
			return describeLine(s, before), nil
		}
		if before == nil || n == maxPredecessors {
			return line{}, fault.New(fault.NotFound, "The organization has no such log")
		}
		s = before
	}
}

func describeLine(s, before *log.State) line {
	l := line{tenant: s.Identity().Tenant}
	if before != nil {
		l.predecessor = &wire.Predecessor{Log: before.Identity().Origin, Events: before.Size()}
	}
	return l
}
