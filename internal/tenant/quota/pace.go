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

// kindPace has one record, under key "", from an organization's first limited change on.
const kindPace storage.Kind = "statement_pace"

// CountStatement returns the changes that count one more statement by people, to be written together with it, or none
// if there is no limit. It returns fault.RateLimited beyond the limit, which allows a minute's statements at once.
// Callers do not count changes that make an organization safer (revoking, cancelling, expiring), nor those of the
// service and its operator, so these never wait.
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

// CountedStatements returns how many statements count at present: those that would be allowed again if nothing was
// stated for a minute. It returns 0 if there is no limit.
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

// MaxStatementsPerMinute is the highest rate: one statement per millisecond.
const MaxStatementsPerMinute = uint64(time.Minute / time.Millisecond)

func statementInterval(l Limits) time.Duration {
	return max(time.Millisecond, time.Minute/time.Duration(l.StatementsPerMinute))
}

func (q *Quota) statementRates() records.Store[ratelimit.GCRA] {
	return records.New[ratelimit.GCRA](q.Records, kindPace, unreadableMessage)
}

// readStatementRate reads the time up to which the rate is used. It ignores a time more than a minute ahead, because
// only a clock that was corrected since can have written it.
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
