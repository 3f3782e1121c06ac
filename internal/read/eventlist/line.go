package eventlist

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
)

// maxPredecessors bounds how far back a log is looked for.
const maxPredecessors = 64

// line is the log that a question is about, in the line of an organization's logs.
type line struct {
	tenant      id.Tenant
	predecessor *wire.Predecessor // nil: it is the first one
}

// openLine returns the log that a question names by its origin, or the one that is written now.
// fault.NotFound when it is none of the organization's.
func (r *Reader) openLine(ctx context.Context, a Asked) (line, error) {
	s, err := r.Ledgers.State(ctx, a.Tenant)
	if err != nil {
		return line{}, err
	}
	for wanted, n := id.Origin(a.Values.Get("log")), 0; ; n++ {
		before, err := r.Ledgers.Predecessor(ctx, s)
		if err != nil {
			return line{}, err
		}
		if wanted == "" || wanted == s.Identity().Origin {
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
