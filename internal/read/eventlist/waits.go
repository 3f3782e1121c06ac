package eventlist

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Bounds of the work for waiting times.
const (
	maxSteps = 5000 // events about approvals that are read, several per approval
	stepPage = 500
)

// approvalWaits returns the waiting times of the approvals that were decided by an event of [from, to). It reads the
// latest maxSteps events about approvals.
func (r *Reader) approvalWaits(ctx context.Context, t id.Tenant, from, to index.Bound) (wire.Waits, error) {
	q := index.Query{Limit: stepPage, Filter: index.Filter{
		Signer: event.SignerSystem, Kind: string(sysevent.Approval), From: from, To: to}}
	var waits []int64
	for looked := 0; looked < maxSteps; {
		page, err := r.Index.List(ctx, t, q)
		if err != nil {
			return wire.Waits{}, err
		}
		state, err := r.Ledgers.State(ctx, t) // after the list, because it must contain all rows
		if err != nil {
			return wire.Waits{}, err
		}
		found, err := r.readWaits(ctx, state, page.Rows)
		if err != nil {
			return wire.Waits{}, err
		}
		waits = append(waits, found...)
		if page.Next == nil {
			return summarize(waits, true), nil
		}
		q.After, looked = page.Next, looked+max(1, len(page.Rows))
	}
	return summarize(waits, false), nil
}

// readWaits returns the waiting times that end at events about approvals.
func (r *Reader) readWaits(ctx context.Context, s *log.State, rows []index.Row) (found []int64, err error) {
	i := 0
	for e, err := range r.Ledgers.EventsAt(ctx, s, Indices(rows), storage.FieldEnvelope) {
		if err != nil {
			return nil, err
		}
		wait, err := waitUntil(&e, rows[i].ReceivedAt)
		if err != nil {
			return nil, err
		}
		if i++; wait >= 0 {
			found = append(found, wait)
		}
	}
	return found, nil
}

// Indices returns the indices of rows, in order.
func Indices(rows []index.Row) []id.Index {
	at := make([]id.Index, len(rows))
	for i := range rows {
		at[i] = rows[i].Index
	}
	return at
}

// waitUntil returns the waiting time in milliseconds that ends at an event, at the time decided, or -1.
func waitUntil(e *storage.Event, decided id.Instant) (int64, error) {
	if e.Envelope == nil {
		return -1, nil
	}
	var read struct {
		Payload struct {
			Approval   string `json:"approval_id"`
			Transition string `json:"transition"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(e.Envelope, &read); err != nil {
		return 0, fmt.Errorf("read event %d: %w: %w", e.Index, storage.ErrCorrupt, err)
	}
	requested, ok := id.RisingTime("apr_", read.Payload.Approval)
	if !ok || read.Payload.Transition != "approved" && read.Payload.Transition != "denied" {
		return -1, nil
	}
	return max(0, int64(decided-requested)), nil
}

// summarize returns the quantiles of waiting times: the smallest one that is at least as long as the given percentage
// of them.
func summarize(waits []int64, complete bool) wire.Waits {
	w := wire.Waits{Decided: len(waits), Complete: complete}
	if len(waits) == 0 {
		return w
	}
	slices.Sort(waits)
	at := func(percent int) *int64 { return &waits[(len(waits)*percent+99)/100-1] }
	w.P50, w.P99 = at(50), at(99)
	return w
}
