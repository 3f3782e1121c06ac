// Package quota limits how many things of a kind an organization has, and how often its people change something. It does not
// count events: package log enforces the monthly limit of events.
//
// Callers need not know how counts are stored, how they stay correct under concurrent changes, or how a store without
// counts gets them.
//
// Invariants:
//
//   - A count is a record in the organization's partition. It is written together with the thing that it counts, on the
//     condition that it has not changed since it was read: of two callers who create the last thing that a plan allows,
//     one is refused.
//   - An organization without such a record is counted once by reading all its things. So older stores and older
//     exports continue to work, and their things beyond a limit stay.
//   - A limit never prevents ending a thing.
//   - If a count cannot be read, the change is refused. It never means "no limit".
//   - Organizations are counted separately.
package quota

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Limits are the limits of one organization. 0 means no limit.
type Limits struct {
	Agents              uint64
	IngestKeys          uint64 // not revoked; ten times as many including revoked ones
	Policies            uint64
	PolicyVersions      uint64 // of one policy
	StatementsPerMinute uint64 // changes that people make in the console
}

// Quota maintains the counts of all organizations. Its methods may be called concurrently.
type Quota struct {
	Records storage.RecordStore
	Clock   func() time.Time
	// Plan returns the limits of an organization (org.Orgs.Limits). If nil, everything is counted and nothing is
	// limited.
	Plan func(ctx context.Context, t id.Tenant) (Limits, error)
}

// Resource is a kind of thing that is counted.
type Resource struct {
	Kind   storage.Kind                       // kind of the things' records
	Counts func(storage.Record) bool          // whether a record is counted; nil: each is
	Ended  func(storage.Record) (bool, error) // whether it stands for an ended thing; nil: none does
	Most   func(Limits) uint64
	Full   func(most uint64) string // the message for a client at the limit
	// Spent is the message for a client after endedToo times the limit were created, including ended ones. It is set
	// only together with Ended.
	Spent func(made uint64) string
}

// endedToo times the limit may be created in total, including ended things.
const endedToo = 10

// Count is the number of things of a Resource that an organization has.
type Count struct {
	Made  uint64 `json:"made"`           // all, including ended ones
	Ended uint64 `json:"ended,omitzero"` // the ended ones
}

// Open returns the number of things that have not ended.
func (c Count) Open() uint64 { return c.Made - min(c.Ended, c.Made) }

// unreadableMessage is the message for a client if counts cannot be read.
const unreadableMessage = "The organization can't be read"

func (q *Quota) countStore() records.Store[Count] {
	return records.New[Count](q.Records, kindCount, unreadableMessage)
}

// kindCount has one record for each Resource, by the kind of its things.
const kindCount storage.Kind = "count"

// Make returns the change that counts one more thing, to be written together with the thing. It returns fault.Conflict
// with code plan_limit if the organization already has as many as its plan allows.
func (q *Quota) Make(ctx context.Context, t id.Tenant, r Resource) (storage.Change, error) {
	most, err := q.maximumFor(ctx, t, r)
	if err != nil {
		return storage.Change{}, err
	}
	return q.changeCount(ctx, t, r, func(c *Count) error {
		if most > 0 && c.Open() >= most {
			return errPlanLimit(r.Full(most))
		}
		if most > 0 && r.Ended != nil && c.Made >= most*endedToo {
			return errPlanLimit(r.Spent(c.Made))
		}
		c.Made++
		return nil
	})
}

// End returns the change that counts a thing as ended, to be written together with its end.
func (q *Quota) End(ctx context.Context, t id.Tenant, r Resource) (storage.Change, error) {
	return q.changeCount(ctx, t, r, func(c *Count) error { c.Ended++; return nil })
}

// Remove returns the change that no longer counts a thing, to be written together with its removal.
func (q *Quota) Remove(ctx context.Context, t id.Tenant, r Resource) (storage.Change, error) {
	return q.changeCount(ctx, t, r, func(c *Count) error { c.Made -= min(c.Made, 1); return nil })
}

// Count returns the number of things.
func (q *Quota) Count(ctx context.Context, t id.Tenant, r Resource) (Count, error) {
	v, err := q.readCount(ctx, t, r)
	return v.Value, err
}

// Limits returns the limits of an organization.
func (q *Quota) Limits(ctx context.Context, t id.Tenant) (Limits, error) {
	if q.Plan == nil {
		return Limits{}, nil
	}
	return q.Plan(ctx, t)
}

func (q *Quota) maximumFor(ctx context.Context, t id.Tenant, r Resource) (uint64, error) {
	l, err := q.Limits(ctx, t)
	if err != nil {
		return 0, err
	}
	return r.Most(l), nil
}

func (q *Quota) changeCount(
	ctx context.Context, t id.Tenant, r Resource, count func(*Count) error,
) (storage.Change, error) {
	v, err := q.readCount(ctx, t, r)
	if err != nil {
		return storage.Change{}, err
	}
	if err := count(&v.Value); err != nil {
		return storage.Change{}, err
	}
	return q.countStore().Put(v)
}

// readCount reads a count, or computes it from the things themselves.
func (q *Quota) readCount(ctx context.Context, t id.Tenant, r Resource) (records.Versioned[Count], error) {
	v, err := q.countStore().Get(ctx, t, string(r.Kind))
	if err == nil && !v.Exists() {
		v.Value, err = q.countRecords(ctx, t, r)
	}
	return v, err
}

func (q *Quota) countRecords(ctx context.Context, t id.Tenant, r Resource) (c Count, err error) {
	for record, err := range records.Scan(ctx, q.Records, t, r.Kind, records.Range{}, 0) {
		if err == nil {
			err = c.addRecord(r, record)
		}
		if err != nil {
			return c, records.Unreadable(unreadableMessage, "count "+string(r.Kind), err)
		}
	}
	return c, nil
}

func (c *Count) addRecord(r Resource, record storage.Record) error {
	if r.Counts != nil && !r.Counts(record) {
		return nil
	}
	c.Made++
	if r.Ended == nil {
		return nil
	}
	over, err := r.Ended(record)
	if over {
		c.Ended++
	}
	return err
}

// errPlanLimit is the error for a thing that exceeds a plan.
func errPlanLimit(message string) error {
	return &fault.Error{Kind: fault.Conflict, Code: "plan_limit", Message: message}
}

// RecordChecks returns, by kind, functions that report whether a record of this package can be decoded. An import calls
// them before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindCount: records.Check[Count],
		kindPace:  records.Check[ratelimit.GCRA],
	}
}
