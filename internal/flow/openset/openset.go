// Package openset counts and lists an organization's objects of one kind that are open for some time, for example its
// approvals, which are open until they are decided, or its workflow runs, which are open until they end. It maintains how
// many are open, how many of them each holder of a share (an ingest key, an agent) has opened, how fast they are opened, and a list of all objects with
// the latest first.
//
// It hides the records of the counts and how the bounds are enforced. Callers choose the stored forms and the bounds.
//
// Invariants:
//
//   - Counts change in the write that opens or closes the object, so they are exact.
//   - An organization never has more than Bounds.Open open objects, and a holder never more than Share.Most.
//   - An object has one entry in the list, whose key is records.ReverseKey of the object's name.
package openset

import (
	"context"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Options configure New. All are required. T is the stored form of an organization's counts, S that of a
// holder's count, and E an entry of the list.
type Options[T, S, E any] struct {
	Records storage.RecordStore
	Tallies storage.Kind // a T under the key "", and an S under the key of each holder
	List    storage.Kind // an E for each object
	Message string       // for clients if a record cannot be read (records.Store)

	Tally func(*T) (open *int, pace *ratelimit.GCRA)
	Share func(*S) (open *int)

	Bounds Bounds
}

// Bounds limit the open objects of an organization, with the messages of the errors.
type Bounds struct {
	Open             int           // at the same time
	Burst            int           // objects that may be opened at once
	Every            time.Duration // after this time, one more may be opened
	TooMany, TooFast string
}

// Share limits the open objects of one holder.
type Share struct {
	Key     string // of the holder: the ID of an ingest key, or another text with a slash
	Most    int
	TooMany string // the message if there are more
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

// Change counts the objects that one write opens and closes.
type Change[T, S, E any] struct {
	set     *Set[T, S, E]
	tenant  id.Tenant
	tally   records.Versioned[T]
	shares  []records.Versioned[S] // that were read
	counted bool                   // tally was read
}

// Begin starts a change of an organization's set.
func (s *Set[T, S, E]) Begin(t id.Tenant) *Change[T, S, E] {
	return &Change[T, S, E]{set: s, tenant: t}
}

// Open counts one more open object, also for each share. It returns fault.RateLimited if that exceeds a bound.
func (c *Change[T, S, E]) Open(ctx context.Context, now id.Instant, shares ...Share) error {
	bounds := &c.set.options.Bounds
	for _, s := range shares {
		held, err := c.countShare(ctx, s.Key, 1)
		if err != nil {
			return err
		}
		if held > s.Most {
			return errTooMany(s.TooMany, time.Minute)
		}
	}
	if err := c.count(ctx, 1); err != nil {
		return err
	}
	open, pace := c.set.options.Tally(&c.tally.Value)
	if *open > bounds.Open {
		return errTooMany(bounds.TooMany, time.Minute)
	}
	if wait := pace.Take(now, bounds.Burst, bounds.Every); wait > 0 {
		return errTooMany(bounds.TooFast, wait)
	}
	return nil
}

// Close counts one open object less, also for each share for which it was counted.
func (c *Change[T, S, E]) Close(ctx context.Context, shares ...string) error {
	for _, key := range shares {
		if _, err := c.countShare(ctx, key, -1); err != nil {
			return err
		}
	}
	return c.count(ctx, -1)
}

// count changes the organization's count.
func (c *Change[T, S, E]) count(ctx context.Context, by int) (err error) {
	if !c.counted {
		if c.tally, err = c.set.Tallies.Get(ctx, c.tenant, ""); err != nil {
			return err
		}
		c.counted = true
	}
	open, _ := c.set.options.Tally(&c.tally.Value)
	*open += by
	return nil
}

// countShare changes the count of a holder and returns it.
func (c *Change[T, S, E]) countShare(ctx context.Context, key string, by int) (int, error) {
	at := slices.IndexFunc(c.shares, func(s records.Versioned[S]) bool { return s.Key == key })
	if at < 0 {
		read, err := c.set.shares.Get(ctx, c.tenant, key)
		if err != nil {
			return 0, err
		}
		at, c.shares = len(c.shares), append(c.shares, read)
	}
	held := c.set.options.Share(&c.shares[at].Value)
	*held += by
	return *held, nil
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
	for _, s := range c.shares {
		share, err := c.set.shares.Put(s)
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
