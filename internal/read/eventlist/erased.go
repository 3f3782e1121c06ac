package eventlist

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/storage"
)

// erasures finds when envelopes were erased. One erasure may concern many events, and is read once.
type erasures struct {
	*Reader
	tenant id.Tenant
	times  map[id.Index]id.Instant
}

func (r *Reader) erasuresOf(t id.Tenant) *erasures {
	return &erasures{Reader: r, tenant: t, times: make(map[id.Index]id.Instant)}
}

// addTime sets the time at which the event at an index erased e.
func (r *erasures) addTime(ctx context.Context, e *wire.Event, erasedBy id.Index) (err error) {
	e.ErasedAt, err = r.time(ctx, erasedBy)
	return err
}

// time returns the time of the erasure at an index. It is zero if the index is 0 or the erasure is not published yet.
func (r *erasures) time(ctx context.Context, erasedBy id.Index) (wire.Time, error) {
	if erasedBy == 0 {
		return 0, nil
	}
	at, known := r.times[erasedBy]
	if !known {
		s, err := r.Ledgers.State(ctx, r.tenant)
		if err != nil || s.Size() <= erasedBy {
			return 0, err
		}
		erasing, err := r.Ledgers.Event(ctx, s, erasedBy, storage.FieldColumns)
		if err != nil {
			return 0, fmt.Errorf("read erasure: %w", err)
		}
		at = erasing.ReceivedAt
		r.times[erasedBy] = at
	}
	return wire.Time(at), nil
}
