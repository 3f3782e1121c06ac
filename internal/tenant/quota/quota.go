// Package quota bounds an organization: how many things of a kind it has, and
// how often its people change something.
//
// Invariants:
//
//   - A count is a record of the organization's partition. It is written together with
//     the thing that it counts, on the condition that it has not changed since: of two
//     callers who make the last thing of a plan, one is refused.
//   - An organization without such a record is counted once by reading all its things.
//     So older stores and older exports go on, and their things beyond a bound stay.
//   - Ending a thing is never refused by a bound.
//   - A count that can't be read refuses. It never means "no bound".
//   - Nothing of one organization counts for another.
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

// Limits are the bounds of one organization. 0 is no bound.
type Limits struct {
	Agents              uint64
	IngestKeys          uint64 // not revoked; ten times as many in all
	Policies            uint64
	PolicyVersions      uint64 // of one policy
	StatementsPerMinute uint64 // changes that people make in the console
}

// Quota maintains the counts of all organizations. Its methods may be called concurrently.
type Quota struct {
	Records storage.RecordStore
	Clock   func() time.Time
	// Plan returns the bounds of an organization (org.Orgs.Limits). If nil, everything is counted and nothing is bounded.
	Plan func(ctx context.Context, t id.Tenant) (Limits, error)
}

// Resource is a kind of things that are counted.
type Resource struct {
	Kind   storage.Kind                       // of the things' records
	Counts func(storage.Record) bool          // whether a record is counted; nil: each is
	Ended  func(storage.Record) (bool, error) // whether it stands for a thing that is over; nil: none does
	Most   func(Limits) uint64
	Full   func(most uint64) string // the message for a client at the bound
	// Spent is the message for a client when endedToo times as many were made, ended ones
	// included. Only for a Resource with Ended.
	Spent func(made uint64) string
}

// endedToo is how many times the bound may be made in all, ended things included.
const endedToo = 10

// Count is how many things of a Resource an organization has.
type Count struct {
	Made  uint64 `json:"made"`           // all that are there
	Ended uint64 `json:"ended,omitzero"` // of these
}

// Open returns how many are not over.
func (c Count) Open() uint64 { return c.Made - min(c.Ended, c.Made) }

// unreadableMessage is the message for a client when counts can't be read.
const unreadableMessage = "The organization can't be read"

func (q *Quota) countStore() records.Store[Count] {
	return records.New[Count](q.Records, kindCount, unreadableMessage)
}

// kindCount has one record for each Resource, by the kind of its things.
const kindCount storage.Kind = "count"

// Make returns the change that counts one more thing, to be written with the thing.
// fault.Conflict with code plan_limit when the organization has as many as it may have.
func (q *Quota) Make(ctx context.Context, t id.Tenant, r Resource) (storage.Change, error) {
	most, err := q.maximumOf(ctx, t, r)
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

// End returns the change that counts a thing as over, to be written with that.
func (q *Quota) End(ctx context.Context, t id.Tenant, r Resource) (storage.Change, error) {
	return q.changeCount(ctx, t, r, func(c *Count) error { c.Ended++; return nil })
}

// Remove returns the change that counts a thing no more, to be written with its removal.
func (q *Quota) Remove(ctx context.Context, t id.Tenant, r Resource) (storage.Change, error) {
	return q.changeCount(ctx, t, r, func(c *Count) error { c.Made -= min(c.Made, 1); return nil })
}

// Count returns how many things there are.
func (q *Quota) Count(ctx context.Context, t id.Tenant, r Resource) (Count, error) {
	v, err := q.readCount(ctx, t, r)
	return v.Value, err
}

// Limits returns the bounds of an organization.
func (q *Quota) Limits(ctx context.Context, t id.Tenant) (Limits, error) {
	if q.Plan == nil {
		return Limits{}, nil
	}
	return q.Plan(ctx, t)
}

func (q *Quota) maximumOf(ctx context.Context, t id.Tenant, r Resource) (uint64, error) {
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

// readCount reads a count, or makes it of the things themselves.
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

// errPlanLimit is the error for a thing that a plan has no room for.
func errPlanLimit(message string) error {
	return &fault.Error{Kind: fault.Conflict, Code: "plan_limit", Message: message}
}

// RecordChecks returns, by kind, what reports whether a record of this package can be read. An import asks it before it writes.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindCount: records.Check[Count],
		kindPace:  records.Check[ratelimit.GCRA],
	}
}
