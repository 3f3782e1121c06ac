package quota

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// kindPace has one record, under key "", from an organization's first paced change on.
const kindPace storage.Kind = "statement_pace"

// CountStatement returns the changes that count one more statement of people, to be written with
// it: none where there is no bound. fault.RateLimited beyond the bound. So many as are
// allowed in a minute may be made at once. It does not count changes that make an organization safer
// (revoking, cancelling, expiring), nor those of the service and its operator. They
// never wait.
func (q *Quota) CountStatement(ctx context.Context, t id.Tenant) ([]storage.Change, error) {
	l, err := q.Limits(ctx, t)
	if err != nil || l.StatementsPerMinute == 0 {
		return nil, err
	}
	v, err := q.readStatementRate(ctx, t)
	if err != nil {
		return nil, err
	}
	if wait := v.Value.Take(id.InstantOf(q.Clock()), int(l.StatementsPerMinute), statementInterval(l)); wait > 0 {
		return nil, &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", RetryAfter: wait,
			Message: fmt.Sprintf("Too many changes: at most %d in a minute", l.StatementsPerMinute)}
	}
	c, err := q.statementRates().Put(v)
	return []storage.Change{c}, err
}

// CountedStatements returns how many statements count at the moment: those for which there would be
// room again if nothing was stated for a minute. 0 without a bound.
func (q *Quota) CountedStatements(ctx context.Context, t id.Tenant) (uint64, error) {
	l, err := q.Limits(ctx, t)
	if err != nil || l.StatementsPerMinute == 0 {
		return 0, err
	}
	v, err := q.readStatementRate(ctx, t)
	if err != nil {
		return 0, err
	}
	ahead := time.Duration(max(0, v.Value.Arrival-id.InstantOf(q.Clock()))) * time.Millisecond
	every := statementInterval(l)
	return uint64((ahead + every - 1) / every), nil
}

// MaxStatementsPerMinute is the fastest pace: one statement in a millisecond.
const MaxStatementsPerMinute = uint64(time.Minute / time.Millisecond)

func statementInterval(l Limits) time.Duration {
	return max(time.Millisecond, time.Minute/time.Duration(l.StatementsPerMinute))
}

func (q *Quota) statementRates() records.Store[ratelimit.GCRA] {
	return records.New[ratelimit.GCRA](q.Records, kindPace, unreadableMessage)
}

// readStatementRate reads the time up to which the pace was paid. A time more than a minute ahead is
// dropped, because only a corrected clock can have written it.
func (q *Quota) readStatementRate(ctx context.Context, t id.Tenant) (records.Versioned[ratelimit.GCRA], error) {
	v, err := q.statementRates().Get(ctx, t, "")
	if err != nil {
		return v, err
	}
	if v.Value.Arrival > id.InstantOf(q.Clock().Add(time.Minute)) {
		v.Value.Arrival = 0
	}
	return v, nil
}
