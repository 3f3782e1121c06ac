package erasure

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Limits of a step.
const (
	maxApprovals = 256 // payloads erased by one append, and approvals examined
	pageEvents   = 1024
	maxPages     = 8 // pages of the event list per step, because a page may be empty
)

// portion is the set of envelopes and payloads that one append erases.
type portion struct {
	reason    Reason
	erasure   ID         // "" for a retention
	ranges    []id.Range // of envelopes
	approvals []approval.ID
}

// addIndex adds an index that is greater than all others.
func (p *portion) addIndex(at id.Index) {
	if last := len(p.ranges) - 1; last >= 0 && p.ranges[last].End == at {
		p.ranges[last].End++
		return
	}
	p.ranges = append(p.ranges, id.Range{Begin: at, End: at + 1})
}

func (p *portion) count() (n int) {
	for _, r := range p.ranges {
		n += r.Len()
	}
	return n
}

// progress returns the change of the record that tracks the progress of an erasure, given the number of erased
// envelopes and payloads.
type progress func(envelopes, payloads int) (storage.Change, error)

// appendPortion appends a portion with its progress. A portion that erases nothing only writes the progress.
func (e *Erasures) appendPortion(ctx context.Context, t id.Tenant, principal string, p *portion, move progress) error {
	var quiet []storage.Change // of a portion that erases nothing
	prepare := func(ctx context.Context, s *log.State) (Selection, error) {
		if err := e.checkHold(ctx, s); err != nil {
			return Selection{}, err
		}
		changes, payloads, err := e.erasePayloads(ctx, t, p.approvals)
		if err != nil {
			return Selection{}, err
		}
		beside := func(envelopes int) (sysevent.Change, error) {
			moved, err := move(envelopes, len(payloads))
			act := sysevent.Change{Statements: p.statements(payloads), Changes: append(changes, moved)}
			if quiet = nil; envelopes+len(payloads) == 0 {
				quiet = act.Changes
			}
			return act, err
		}
		return Selection{Ranges: p.ranges, Reason: string(p.reason), Beside: beside}, nil
	}
	if _, err := e.Eraser.Erase(ctx, t, principal, prepare); err != nil {
		return fmt.Errorf("append erasure: %w", err)
	}
	if quiet != nil {
		return e.write(ctx, t, quiet...)
	}
	return nil
}

// statements returns the statement about the payloads of a portion.
func (p *portion) statements(payloads []approval.ID) []sysevent.Statement {
	if len(payloads) == 0 {
		return nil
	}
	payload := map[string]any{"approval_ids": payloads, "reason": p.reason}
	if p.erasure != "" {
		payload["erasure_id"] = p.erasure
	}
	return []sysevent.Statement{{Kind: sysevent.ApprovalErased, Payload: payload}}
}

// eraseApprovals erases payloads by the agent, trace, principal or subject of the request.
func (e *Erasures) eraseApprovals(
	ctx context.Context, t id.Tenant, s *log.State, r *records.Versioned[record],
) (err error) {
	v := &r.Value
	p, next := e.newPortion(r), approval.ID("")
	switch {
	case v.Approval != "":
		p.approvals = []approval.ID{v.Approval}
	case v.Event == "":
		if p.approvals, next, err = e.findPayloads(ctx, t, s, v); err != nil {
			return err
		}
	}
	return e.appendPortion(ctx, t, v.AskedBy, &p, func(_, payloads int) (storage.Change, error) {
		moved := *v
		moved.Before, moved.Approvals = next, v.Approvals+uint64(payloads)
		switch {
		case next != "":
		case v.Approval != "":
			moved.Phase = phaseTexts
		default:
			moved.Phase = phaseEvents
		}
		return e.putMoved(r, moved)
	})
}

// findPayloads returns the approvals of the next page whose payload matches, and where the page after it begins, or
// "" at the end.
func (e *Erasures) findPayloads(
	ctx context.Context, t id.Tenant, s *log.State, r *record,
) (names []approval.ID, next approval.ID, err error) {
	from, to, err := e.timeRange(ctx, s, r)
	if err != nil {
		return nil, "", err
	}
	page, err := e.Lists.List(ctx, t, approval.Filter{Agent: r.Agent}, r.Before, maxApprovals)
	for i := range page.Approvals {
		a := &page.Approvals[i]
		if a.ErasedAt == 0 && from <= a.CreatedAt && a.CreatedAt < to &&
			(r.Trace == "" || r.Trace == a.Trace) && (r.Principal == "" || r.Principal == a.Principal) &&
			(r.Subject == "" || r.matchesSubject(a.OnBehalfOf)) {
			names = append(names, a.ID)
		}
	}
	return names, page.Next, err
}

func (r *record) matchesSubject(o *event.OnBehalfOf) bool {
	return o != nil && r.Subject == o.Subject && (r.Issuer == "" || r.Issuer == o.Issuer)
}

// putMoved returns the change that updates an erasure's record.
func (e *Erasures) putMoved(r *records.Versioned[record], moved record) (storage.Change, error) {
	return e.erasures.Put(records.Versioned[record]{Key: r.Key, Value: moved, Version: r.Version})
}

func (e *Erasures) newPortion(r *records.Versioned[record]) portion {
	return portion{reason: r.Value.Reason, erasure: ID(records.ReverseKey(r.Key))}
}

// timeRange returns the times [from, to) in which matching approvals were requested. For an index, it is the time at
// which that event was received.
func (e *Erasures) timeRange(ctx context.Context, s *log.State, r *record) (from, to id.Instant, err error) {
	if from, err = e.boundTime(ctx, s, r, index.Bound(r.From)); err != nil {
		return 0, 0, err
	}
	to, err = e.boundTime(ctx, s, r, index.Bound(r.To))
	if end := r.AskedAt + 1; to == 0 || to > end {
		to = end
	}
	return from, to, err
}

// boundTime returns the time of a bound, or 0 if there is none. For an index beyond the end, it is the time of the
// request.
func (e *Erasures) boundTime(ctx context.Context, s *log.State, r *record, b index.Bound) (id.Instant, error) {
	switch {
	case !b.Given || b.At != 0:
		return b.At, nil
	case b.Index >= r.End:
		return r.AskedAt + 1, nil
	}
	found, err := e.Ledgers.Event(ctx, s, b.Index, storage.FieldColumns)
	return found.ReceivedAt, err
}

// eraseEvents erases the envelopes of the next events that match, and the payloads of approvals for the same actions.
func (e *Erasures) eraseEvents(ctx context.Context, t id.Tenant, s *log.State, r *records.Versioned[record]) error {
	c := collection{Erasures: e, tenant: t, state: s, record: &r.Value, portion: e.newPortion(r), next: r.Value.Next}
	if err := c.collectEvents(ctx); err != nil {
		return err
	}
	if r.Value.Agent == "" { // otherwise eraseApprovals has handled all approvals of the agent
		var err error
		if c.portion.approvals, err = c.payloadsOfTools(ctx); err != nil {
			return err
		}
	}
	if len(c.portion.approvals) > maxApprovals { // the envelopes follow after the payloads
		c.portion.approvals, c.portion.ranges = c.portion.approvals[:maxApprovals], nil
		c.matched, c.already, c.next, c.end = 0, 0, r.Value.Next, false
	}
	if c.next == r.Value.Next && !c.end && len(c.portion.approvals) == 0 {
		return errLag
	}
	return e.appendPortion(ctx, t, r.Value.AskedBy, &c.portion, func(envelopes, payloads int) (storage.Change, error) {
		moved := r.Value
		already := c.already + uint64(c.portion.count()-envelopes) // some were erased since the list was read
		moved.Next, moved.Matched, moved.Already = c.next, r.Value.Matched+c.matched, r.Value.Already+already
		moved.Erased += uint64(envelopes)
		moved.Approvals += uint64(payloads)
		if c.end {
			moved.Phase = phaseTexts
		}
		return e.putMoved(r, moved)
	})
}

// collection collects the events of one portion.
type collection struct {
	*Erasures
	tenant           id.Tenant
	state            *log.State
	record           *record
	portion          portion
	matched, already uint64
	next             id.Index   // events below it were collected or do not match
	end              bool       // no further events before the end of the erasure
	tools            []id.Index // events with a tool
}

// collectEvents collects the next events that match, as far as they are indexed.
func (c *collection) collectEvents(ctx context.Context) error {
	q := index.Query{Filter: c.record.filter(), Ascending: true, Limit: pageEvents}
	if c.next > 0 {
		after := c.next - 1
		q.After = &after
	}
	for range maxPages {
		page, err := c.Index.List(ctx, c.tenant, q)
		if err != nil {
			return err
		}
		for i := range page.Rows {
			if full := c.addRow(&page.Rows[i]); full {
				return nil
			}
		}
		if page.Next == nil {
			c.next = min(page.End, c.record.End)
			c.end = page.End >= c.record.End
			return nil
		}
		c.next, q.After = *page.Next+1, page.Next
	}
	return nil
}

// addRow adds an event and reports whether the collection is full.
func (c *collection) addRow(row *index.Row) (full bool) {
	if row.Index >= c.record.End {
		c.next, c.end = c.record.End, true
		return true
	}
	c.next = row.Index + 1
	if isOwn(row.Kind) {
		return false
	}
	c.matched++
	if row.ErasedBy != 0 {
		c.already++
		return false
	}
	c.portion.addIndex(row.Index)
	if row.Tool != "" {
		c.tools = append(c.tools, row.Index)
	}
	return c.portion.count() >= MaxEvents || len(c.portion.ranges) == MaxRanges
}

// gone reports which texts were erased. It implements webhook.Gone.
type gone struct{ *Erasures }

func (g gone) EventErased(ctx context.Context, t id.Tenant, at id.Index) (bool, error) {
	s, err := g.Ledgers.State(ctx, t)
	if err != nil || at >= s.Size() {
		return false, err
	}
	stored, err := g.Ledgers.Event(ctx, s, at, storage.FieldEnvelope)
	return stored.ErasedBy != 0, err
}

func (g gone) ApprovalErased(ctx context.Context, t id.Tenant, name string) (bool, error) {
	found, err := g.Lists.Find(ctx, t, approval.ID(name))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return found.ErasedAt != 0, err
}
