package eventlist

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// erasures finds when envelopes were erased. Many events have one erasure, which is read once.
type erasures struct {
	*Reader
	tenant id.Tenant
	times  map[id.Index]id.Instant
}

func (r *Reader) erasuresOf(t id.Tenant) *erasures {
	return &erasures{Reader: r, tenant: t, times: make(map[id.Index]id.Instant)}
}

// addTime adds the time of its erasure to an event, if it was erased and the erasure is published; nil is no event.
func (r *erasures) addTime(ctx context.Context, e *Event) error {
	if e == nil || e.erasedBy == 0 {
		return nil
	}
	at, known := r.times[e.erasedBy]
	if !known {
		s, err := r.Ledgers.State(ctx, r.tenant)
		if err != nil || s.Size() <= e.erasedBy {
			return err
		}
		erasing, err := r.Ledgers.Event(ctx, s, e.erasedBy, storage.FieldColumns)
		if err != nil {
			return fmt.Errorf("read erasure: %w", err)
		}
		at = erasing.ReceivedAt
		r.times[e.erasedBy] = at
	}
	e.ErasedAt = &at
	return nil
}
