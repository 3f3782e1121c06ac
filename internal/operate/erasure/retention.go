package erasure

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

const (
	retentionPause id.Instant = 3_600_000  // between two runs for an organization
	dayLong        id.Instant = 86_400_000 // in milliseconds
)

// BeginRetention returns the changes that schedule an organization's retention. They must be written with the
// setting. The due entry is written first.
func (e *Erasures) BeginRetention(ctx context.Context, t id.Tenant) ([]storage.Change, error) {
	r, err := e.retentions.Get(ctx, t, "")
	if err != nil {
		return nil, err
	}
	r.Value.NextAt = e.currentTime()
	if err := e.noteRetention(ctx, t, r.Value.NextAt); err != nil {
		return nil, err
	}
	change, err := e.retentions.Put(r)
	return []storage.Change{change}, err
}

func (e *Erasures) noteRetention(ctx context.Context, t id.Tenant, at id.Instant) error {
	if err := e.due.NoteEntries(ctx, schedule.Entry{At: at, Tenant: t, Name: retentionName}); err != nil {
		return errUnreadable("note when the retention is due", err)
	}
	return nil
}

// runRetention erases the next envelopes that are too old.
func (w *sweep) runRetention(ctx context.Context, entry schedule.Entry) (schedule.Outcome, error) {
	t := entry.Tenant
	r, err := w.retentions.Get(ctx, t, "")
	switch {
	case err != nil:
		return schedule.Keep(), err
	case !r.Exists():
		return schedule.Absent(entry, w.currentTime()), nil
	case r.Value.NextAt > entry.At: // there is another entry
		return schedule.Done(), nil
	}
	w.served[t] = struct{}{}
	s, err := w.Ledgers.State(ctx, t)
	if err != nil {
		return w.postpone(err)
	}
	keeping, err := w.Settings.Keeping(ctx, s)
	switch {
	case err != nil:
		return schedule.Keep(), err
	case keeping.Days == 0: // the next change of the setting adds another entry
		return schedule.Done(), nil
	case keeping.Hold:
		return w.nextRetention(ctx, t, r, holdPause)
	}
	more, err := w.retain(ctx, t, s, r, w.currentTime()-id.Instant(keeping.Days)*dayLong)
	switch {
	case err != nil && fault.Of(err).Code == holdCode:
		return w.nextRetention(ctx, t, r, holdPause)
	case err != nil:
		return w.postpone(err)
	case more:
		w.more = true
		return schedule.Until(w.currentTime()), nil
	}
	r.Value.Texts = false
	return w.nextRetention(ctx, t, r, retentionPause)
}

// nextRetention schedules the next run before the entry of this one is dropped, so there is one entry, however often
// the setting changes.
func (w *sweep) nextRetention(
	ctx context.Context, t id.Tenant, r records.Versioned[retentionRecord], pause id.Instant,
) (schedule.Outcome, error) {
	r.Value.NextAt = w.currentTime() + pause
	if err := w.noteRetention(ctx, t, r.Value.NextAt); err != nil {
		return schedule.Keep(), err
	}
	change, err := w.retentions.Put(r)
	if err == nil {
		err = w.write(ctx, t, change)
	}
	return schedule.Done(), err
}

// retain erases the envelopes that were received before an instant, as many as fit into one append, and reports
// whether there may be more.
func (e *Erasures) retain(
	ctx context.Context, t id.Tenant, s *log.State, r records.Versioned[retentionRecord], before id.Instant,
) (more bool, err error) {
	v := &r.Value
	if v.Origin != s.Identity().Origin { // the first log or a successor
		v.Origin, v.Next = s.Identity().Origin, 0
	}
	p := portion{reason: ByRetention}
	next, err := e.findOld(ctx, s, v.Next, before)
	if err != nil {
		return false, err
	}
	if next > v.Next { // the service's own events among them are kept
		p.ranges = []id.Range{{Begin: v.Next, End: next}}
	}
	last := approval.ID("")
	if p.approvals, last, err = e.findOldPayloads(ctx, t, v.Approval, before); err != nil {
		return false, err
	}
	if next == v.Next && last == v.Approval {
		return false, e.correctTexts(ctx, t, r)
	}
	err = e.appendPortion(ctx, t, sysevent.Operator, &p, func(envelopes, payloads int) (storage.Change, error) {
		moved := r
		moved.Value.Next, moved.Value.Approval = next, last
		moved.Value.Texts = v.Texts || envelopes+payloads > 0
		return e.retentions.Put(moved)
	})
	return true, err
}

// findOld returns the index after the last event, starting at begin, that was received before an instant. It examines
// at most as many events as fit into one append.
func (e *Erasures) findOld(ctx context.Context, s *log.State, begin id.Index, before id.Instant) (id.Index, error) {
	next, end := begin, min(begin+MaxEvents, s.Size())
	for stored, err := range e.Ledgers.Events(ctx, s, begin, end, storage.FieldColumns) {
		if err != nil {
			return begin, err
		}
		if stored.ReceivedAt >= before {
			break
		}
		next = stored.Index + 1
	}
	return next, nil
}

// correctTexts removes erased texts from the deliveries when the retention has erased everything that is due.
func (e *Erasures) correctTexts(ctx context.Context, t id.Tenant, r records.Versioned[retentionRecord]) error {
	if !r.Value.Texts {
		return nil
	}
	if _, err := e.eraseUnsent(ctx, t); err != nil {
		return err
	}
	return e.checkValues(ctx, t)
}

// eraseUnsent removes erased texts from what waits to be sent, and returns the number of changed deliveries and deleted
// mails.
func (e *Erasures) eraseUnsent(ctx context.Context, t id.Tenant) (int, error) {
	changed, err := e.Deliveries.EraseTexts(ctx, t, gone{e})
	if err != nil {
		return changed, err
	}
	deleted, err := e.Mails.EraseTexts(ctx, t, gone{e}.ApprovalErased)
	return changed + deleted, err
}
