package erasure

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// The bounds of a step.
const (
	maxApprovals = 256 // payloads that one append takes away, and approvals that are looked at
	pageEvents   = 1024
	maxPages     = 8 // of the list of events, because a page may be empty
)

// portion is the envelopes and payloads that one append takes away.
type portion struct {
	reason    Reason
	erasure   ID         // "" for a retention
	ranges    []id.Range // of envelopes
	approvals []approval.ID
}

// addIndex adds an index, which is behind all others.
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

// progress returns the change of the record that says how far an erasure has come, told how many envelopes
// and payloads a portion takes away.
type progress func(envelopes, payloads int) (storage.Change, error)

// land appends a portion with its progress. A portion that takes nothing away moves the progress alone.
func (e *Erasures) land(ctx context.Context, t id.Tenant, principal string, p *portion, move progress) error {
	var quiet []storage.Change // of a portion that takes nothing away
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
	said := map[string]any{"approval_ids": payloads, "reason": p.reason}
	if p.erasure != "" {
		said["erasure_id"] = p.erasure
	}
	return []sysevent.Statement{{Kind: sysevent.ApprovalErased, Payload: said}}
}

// eraseApprovals erases payloads by the agent, trace or principal of the question.
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
	return e.land(ctx, t, v.AskedBy, &p, func(_, payloads int) (storage.Change, error) {
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

// findPayloads returns the approvals of the next page whose payload is wanted, and where the page after it
// begins, "" at the end.
func (e *Erasures) findPayloads(
	ctx context.Context, t id.Tenant, s *log.State, r *record,
) (names []approval.ID, next approval.ID, err error) {
	from, to, err := e.timesOf(ctx, s, r)
	if err != nil {
		return nil, "", err
	}
	page, err := e.Lists.List(ctx, t, approval.Filter{Agent: r.Agent}, r.Before, maxApprovals)
	for i := range page.Approvals {
		a := &page.Approvals[i]
		if a.ErasedAt == 0 && from <= a.CreatedAt && a.CreatedAt < to &&
			(r.Trace == "" || r.Trace == a.Trace) && (r.Principal == "" || r.Principal == a.Principal) {
			names = append(names, a.ID)
		}
	}
	return names, page.Next, err
}

// putMoved returns the change of an erasure's record.
func (e *Erasures) putMoved(r *records.Versioned[record], moved record) (storage.Change, error) {
	return e.erasures.Put(records.Versioned[record]{Key: r.Key, Value: moved, Version: r.Version})
}

func (e *Erasures) newPortion(r *records.Versioned[record]) portion {
	return portion{reason: r.Value.Reason, erasure: ID(records.ReverseKey(r.Key))}
}

// timesOf returns the times [from, to) in which approvals were asked for. That of an index is when its
// event was received.
func (e *Erasures) timesOf(ctx context.Context, s *log.State, r *record) (from, to id.Instant, err error) {
	if from, err = e.timeOf(ctx, s, r, index.Bound(r.From)); err != nil {
		return 0, 0, err
	}
	to, err = e.timeOf(ctx, s, r, index.Bound(r.To))
	if end := r.AskedAt + 1; to == 0 || to > end {
		to = end
	}
	return from, to, err
}

// timeOf returns the time of a bound, 0 for none, and that of the question for an index beyond the end.
func (e *Erasures) timeOf(ctx context.Context, s *log.State, r *record, b index.Bound) (id.Instant, error) {
	switch {
	case !b.Given || b.At != 0:
		return b.At, nil
	case b.Index >= r.End:
		return r.AskedAt + 1, nil
	}
	found, err := e.Ledgers.Event(ctx, s, b.Index, storage.FieldColumns)
	return found.ReceivedAt, err
}

// eraseEvents erases the envelopes of the next events that match, and the payloads of approvals of the
// same actions.
func (e *Erasures) eraseEvents(ctx context.Context, t id.Tenant, s *log.State, r *records.Versioned[record]) error {
	c := collection{Erasures: e, tenant: t, state: s, record: &r.Value, portion: e.newPortion(r), next: r.Value.Next}
	if err := c.collectEvents(ctx); err != nil {
		return err
	}
	if r.Value.Agent == "" { // else eraseApprovals had all approvals of the agent
		var err error
		if c.portion.approvals, err = c.payloadsOfTools(ctx); err != nil {
			return err
		}
	}
	if len(c.portion.approvals) > maxApprovals { // the envelopes come when the payloads are gone
		c.portion.approvals, c.portion.ranges = c.portion.approvals[:maxApprovals], nil
		c.matched, c.already, c.next, c.end = 0, 0, r.Value.Next, false
	}
	if c.next == r.Value.Next && !c.end && len(c.portion.approvals) == 0 {
		return errLag
	}
	return e.land(ctx, t, r.Value.AskedBy, &c.portion, func(envelopes, payloads int) (storage.Change, error) {
		moved := r.Value
		already := c.already + uint64(c.portion.count()-envelopes) // some since the list was read
		moved.Next, moved.Matched, moved.Already = c.next, r.Value.Matched+c.matched, r.Value.Already+already
		moved.Erased += uint64(envelopes)
		moved.Approvals += uint64(payloads)
		if c.end {
			moved.Phase = phaseTexts
		}
		return e.putMoved(r, moved)
	})
}

// collection gathers the events of one portion.
type collection struct {
	*Erasures
	tenant           id.Tenant
	state            *log.State
	record           *record
	portion          portion
	matched, already uint64
	next             id.Index   // events below it are collected, or don't match
	end              bool       // there are no others below the end of the erasure
	tools            []id.Index // events that name a tool
}

// collectEvents collects the next events that match, as far as the index reaches.
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

// gone tells which texts were erased (webhook.Gone).
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
