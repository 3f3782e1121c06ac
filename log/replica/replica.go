// Package replica serves reads of ledgers from a store that several processes share, also of ledgers that another
// process owns or whose owner cannot be reached. It hides from its callers (the HTTP surfaces, the directory) whether
// the answer comes from this process's own ledger or from the store.
//
// Invariants:
//
//   - A read replica never appends, never takes over a ledger and never bumps its epoch, so it does not disturb the
//     owner.
//   - Reads never go back. A state that is shown is at least as large as any state that any process showed before the
//     request: each state is stored before it is shown, and the replica reads the store after the request arrived.
//   - No process shows a smaller state afterwards. If the owner has not published the stored head yet, its append has
//     been pending for takeover.Sight, and State waits for the outcome before it shows the owner's ledger.
//   - A state is durable, extends the latest anchor that this process has of the ledger, and becomes the anchor before
//     it is shown. A store that was rolled back is therefore rejected.
//   - Only one request at a time reads the latest state of a ledger. Requests that arrived before that read began share
//     its result.
package replica

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
)

// Store reads the heads of ledgers and confirms that they are durable.
type Store interface {
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Barrier(ctx context.Context) error
}

// Options configure New. All but Wait are required.
type Options struct {
	Ledgers *log.Ledgers
	Reader  *log.Reader // of the same store, with the same anchors
	Store   Store
	Anchors *anchor.Folder
	Elapsed func() time.Duration // as that of Ledgers

	// AnchorFirst is as that of Ledgers: an owner may have anchored a state that it has not shown yet.
	AnchorFirst func() bool

	Wait func(ctx context.Context, d time.Duration) error // until a sighting may be shown; default: syncs.Sleep
}

// Ledgers is the ledgers of a store for readers at any process. Its methods may be called concurrently.
type Ledgers struct {
	*log.Ledgers
	options Options
	stoodIn atomic.Uint64
	reading syncs.KeyLocks[id.Tenant]
	sighted *cache.Map[id.Tenant, *sighting]  // latest of each ledger, by this process
	cached  *cache.Map[id.Tenant, *sighting]  // last that was shown
	shown   *cache.Map[id.Tenant, *log.State] // at anchors
	looks   chan struct{}                     // one token for each read by Shown
}

// maxCached bounds the number of cached states, about 2 KiB each.
const maxCached = 1024

// New returns the ledgers of a shared store.
func New(o Options) *Ledgers {
	if o.Wait == nil {
		o.Wait = syncs.Sleep
	}
	return &Ledgers{Ledgers: o.Ledgers, options: o,
		sighted: cache.NewMap(cache.MapOptions[id.Tenant, *sighting]{Limit: maxCached}),
		cached:  cache.NewMap(cache.MapOptions[id.Tenant, *sighting]{Limit: maxCached}),
		shown:   cache.NewMap(cache.MapOptions[id.Tenant, *log.State]{Limit: maxCached}),
		looks:   make(chan struct{}, maxLooks),
	}
}

// lateLook is the interval at which State polls for the outcome of a pending append.
const lateLook = 20 * time.Millisecond

// State returns the latest state of a ledger that may be shown. With takeover.WithStandIn this process need not own
// the ledger. An owner waits while an append is late, because a replica may already have shown its result.
//
// It returns log.ErrNotOwner if another process owns the ledger, fault.Unavailable if an append is still late when ctx
// ends or if the stored state cannot be confirmed, or an error of the store.
func (l *Ledgers) State(ctx context.Context, t id.Tenant) (*log.State, error) {
	for {
		s, late, err := l.Newest(ctx, t)
		switch {
		case errors.Is(err, log.ErrNotOwner) && takeover.StandsIn(ctx):
			if s, err = l.standIn(ctx, t); err == nil {
				l.stoodIn.Add(1)
			}
			return s, err
		case err != nil || !late:
			return s, err
		}
		if err := syncs.Sleep(ctx, lateLook); err != nil {
			return nil, unavailable("An event is being written; try again", err)
		}
	}
}

// StoodIn returns how many states of ledgers of other processes were shown.
func (l *Ledgers) StoodIn() uint64 { return l.stoodIn.Load() }

// Successor is like log.Ledgers.Successor, but another process may own the successor.
func (l *Ledgers) Successor(ctx context.Context, s *log.State) (*log.State, error) {
	t, err := l.SuccessorOf(ctx, s)
	if err != nil || t == 0 {
		return nil, err
	}
	successor, err := l.State(takeover.WithStandIn(ctx), t)
	if fault.Is(err, fault.NotFound) || err == nil && successor.Size() == 0 {
		return nil, nil
	}
	return successor, err
}

// standIn returns the latest state of a ledger that another process owns.
func (l *Ledgers) standIn(ctx context.Context, t id.Tenant) (*log.State, error) {
	began := l.options.Elapsed()
	found, err := l.findCached(ctx, t)
	if found != nil || err != nil {
		return found, err
	}
	seen, err := l.sightAfter(ctx, t, began)
	if err != nil {
		return nil, err
	}
	if err := l.options.Wait(ctx, seen.until-l.options.Elapsed()); err != nil {
		return nil, unavailable("The store can't be reached", err)
	}
	return l.show(seen)
}

// sighting is a state that was read from the store.
type sighting struct {
	stored *log.Stored
	state  *log.State
	began  time.Duration // time before the head was read, by Options.Elapsed
	until  time.Duration // when it may be shown
}

// sightAfter returns a state that this or another request began to read after a time.
func (l *Ledgers) sightAfter(ctx context.Context, t id.Tenant, after time.Duration) (*sighting, error) {
	leave, err := l.reading.Lock(ctx, t)
	if err != nil {
		return nil, err
	}
	defer leave()
	if last, found := l.sighted.Get(t); found && last.began > after {
		return last, nil
	}
	seen, err := l.sight(ctx, t)
	if err == nil {
		l.sighted.Put(t, seen)
	}
	return seen, err
}

// findCached returns the state that this process showed last if it is still the latest, or nil.
func (l *Ledgers) findCached(ctx context.Context, t id.Tenant) (*log.State, error) {
	cached, found := l.cached.Get(t)
	if !found {
		return nil, nil
	}
	head, err := l.options.Store.Head(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("stand in: head: %w", err)
	}
	level, err := cached.stored.RecordedFault(ctx)
	if err != nil || head != cached.state.Head() || level != cached.state.Fault() {
		return nil, nil
	}
	if shown, _ := l.options.Anchors.Find(cached.state.Identity().Origin); shown.Size > head.Size {
		return nil, errUnconfirmed(nil)
	}
	return cached.state, nil
}

// sight reads the stored state and determines when it may be shown. The head is read before the barrier: it is durable if
// the ledger extends it after the barrier.
func (l *Ledgers) sight(ctx context.Context, t id.Tenant) (*sighting, error) {
	began := l.options.Elapsed()
	stored, err := l.options.Reader.Open(ctx, t)
	if err != nil {
		return nil, err
	}
	s, err := stored.MarkedState(ctx)
	if err != nil {
		return nil, unread(err)
	}
	until := l.options.Elapsed() + takeover.Sight
	if err := l.options.Store.Barrier(ctx); err != nil {
		return nil, fmt.Errorf("stand in: barrier: %w", err)
	}
	durable, err := stored.Holds(ctx, s.Shown())
	if err != nil {
		return nil, unread(err)
	}
	shown, _ := l.options.Anchors.Find(s.Identity().Origin)
	if s.Size() > 0 {
		err = stored.ConfirmHead(ctx, s)
	}
	switch {
	case err != nil:
		return nil, unread(err)
	case !durable || s.Size() < shown.Size || s.Detached() || s.Fault().Level == log.ReadOnly:
		return nil, errUnconfirmed(nil)
	case s.Size() == shown.Size && !l.options.AnchorFirst():
		until = 0 // the owner or another replica has already shown it
	}
	return &sighting{stored: stored, state: s, began: began, until: until}, nil
}

// show makes a state the anchor of its ledger and returns it.
func (l *Ledgers) show(seen *sighting) (*log.State, error) {
	identity := seen.state.Identity()
	if shown, _ := l.options.Anchors.Find(identity.Origin); shown.Size < seen.state.Size() {
		if err := l.options.Anchors.Put(seen.state.Checkpoint()); err != nil {
			return nil, unavailable("The anchors can't be written", err)
		}
	}
	l.cached.Put(identity.Tenant, seen)
	return seen.state, nil
}

func unavailable(message string, err error) error {
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", RetryAfter: time.Second, Err: err,
		Message: message}
}

// unread returns the error for a ledger that could not be read. Damage is not reported here: the owner detects and reports
// it.
func unread(err error) error {
	if log.IsDamage(err) {
		return errUnconfirmed(err)
	}
	return fmt.Errorf("stand in: %w", err)
}

// errUnconfirmed is returned if the store does not have the tree that was shown, or may lose it.
func errUnconfirmed(err error) error {
	return unavailable("The latest state of the log can't be confirmed; try again", err)
}
