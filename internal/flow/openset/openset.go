// Package openset counts and lists an organization's objects of one kind that are open for some time, for example its
// approvals, which are open until they are decided, or its workflow runs, which are open until they end. It maintains how
// many are open, how many of them each ingest key has opened, how fast they are opened, and a list of all objects with
// the latest first.
//
// It hides the records of the counts and how the bounds are enforced. Callers choose the stored forms and the bounds.
//
// Invariants:
//
//   - Counts change in the write that opens or closes the object, so they are exact.
//   - An organization never has more than Bounds.Open open objects, and an ingest key never more than Bounds.ByKey.
//   - An object has one entry in the list, whose key is records.ReverseKey of the object's name.
package openset

import (
	"context"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Options configure New. All are required. T is the stored form of an organization's counts, S that of an ingest key's
// count, and E an entry of the list.
type Options[T, S, E any] struct {
	Records storage.RecordStore
	Tallies storage.Kind // a T under the key "", and an S under the ID of each ingest key
	List    storage.Kind // an E for each object
	Message string       // for clients if a record cannot be read (records.Store)

	Tally func(*T) (open *int, pace *ratelimit.GCRA)
	Share func(*S) (open *int)

	Bounds Bounds
}

// Bounds limit the open objects of an organization, with the messages of the errors.
type Bounds struct {
	Open                           int           // at the same time
	ByKey                          int           // of one ingest key at the same time
	Burst                          int           // objects that may be opened at once
	Every                          time.Duration // after this time, one more may be opened
	TooMany, TooManyByKey, TooFast string
}

// Set is the open objects of all organizations. Its methods may be called concurrently.
type Set[T, S, E any] struct {
	Tallies records.Store[T]
	List    records.Store[E]
	shares  records.Store[S]
	options Options[T, S, E]
}

// New returns the set of a store.
func New[T, S, E any](o Options[T, S, E]) *Set[T, S, E] {
	return &Set[T, S, E]{
		Tallies: records.New[T](o.Records, o.Tallies, o.Message),
		List:    records.New[E](o.Records, o.List, o.Message),
		shares:  records.New[S](o.Records, o.Tallies, o.Message),
		options: o,
	}
}

// Check returns an error if the value of a record of the kind Options.Tallies is malformed.
func Check[T, S any](r storage.Record) error {
	if r.Key == "" {
		return records.Check[T](r)
	}
	return records.Check[S](r)
}

// Entry returns the change that writes the list entry of an object in place of the previous one.
func (s *Set[T, S, E]) Entry(name string, entry E) (storage.Change, error) {
	return s.List.Put(records.Versioned[E]{
		Key: records.ReverseKey(name), Value: entry, Version: storage.AnyVersion,
	})
}

// Change counts the objects that one write opens and closes. At most one ingest key may be involved.
type Change[T, S, E any] struct {
	set     *Set[T, S, E]
	tenant  id.Tenant
	tally   records.Versioned[T]
	share   records.Versioned[S]
	counted bool   // tally was read
	key     string // of share; "" until it is read
}

// Begin starts a change of an organization's set.
func (s *Set[T, S, E]) Begin(t id.Tenant) *Change[T, S, E] {
	return &Change[T, S, E]{set: s, tenant: t}
}

// Open counts one more open object of an ingest key. It returns fault.RateLimited if that exceeds a bound.
func (c *Change[T, S, E]) Open(ctx context.Context, ingestKey string, now id.Instant) error {
	bounds := &c.set.options.Bounds
	byKey, err := c.count(ctx, ingestKey, 1)
	if err != nil {
		return err
	}
	open, pace := c.set.options.Tally(&c.tally.Value)
	switch {
	case byKey > bounds.ByKey:
		return errTooMany(bounds.TooManyByKey, time.Minute)
	case *open > bounds.Open:
		return errTooMany(bounds.TooMany, time.Minute)
	}
	if wait := pace.Take(now, bounds.Burst, bounds.Every); wait > 0 {
		return errTooMany(bounds.TooFast, wait)
	}
	return nil
}

// Close counts one open object less. ingestKey is "" if the object was not counted for its ingest key.
func (c *Change[T, S, E]) Close(ctx context.Context, ingestKey string) error {
	_, err := c.count(ctx, ingestKey, -1)
	return err
}

// count changes the counts and returns the count of the ingest key.
func (c *Change[T, S, E]) count(ctx context.Context, ingestKey string, by int) (byKey int, err error) {
	if !c.counted {
		if c.tally, err = c.set.Tallies.Get(ctx, c.tenant, ""); err != nil {
			return 0, err
		}
		c.counted = true
	}
	open, _ := c.set.options.Tally(&c.tally.Value)
	*open += by
	if ingestKey == "" {
		return 0, nil
	}
	if c.key == "" {
		if c.share, err = c.set.shares.Get(ctx, c.tenant, ingestKey); err != nil {
			return 0, err
		}
		c.key = ingestKey
	}
	share := c.set.options.Share(&c.share.Value)
	*share += by
	return *share, nil
}

// First reports whether the organization had no object before. It must be called after Open.
func (c *Change[T, S, E]) First() bool { return c.tally.Version == 0 }

// Changes returns the changes that write the counts. They must be written with the objects.
func (c *Change[T, S, E]) Changes() (changes []storage.Change, err error) {
	if c.counted {
		tally, err := c.set.Tallies.Put(c.tally)
		if err != nil {
			return nil, err
		}
		changes = append(changes, tally)
	}
	if c.key != "" {
		share, err := c.set.shares.Put(c.share)
		if err != nil {
			return nil, err
		}
		changes = append(changes, share)
	}
	return changes, nil
}

func errTooMany(message string, retryAfter time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, Code: "rate_limited", Message: message, RetryAfter: retryAfter}
}
