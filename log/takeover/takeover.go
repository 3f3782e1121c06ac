// Package takeover fences the other writers of ledgers, for processes that share a store.
//
// Invariants:
//
//   - The guard of each append is the safety: two writers never fork a ledger, with or without this package.
//   - A ledger that was taken over has no append of a process that took it over earlier. So the head that is read
//     afterwards has all events that another process acknowledged, or will acknowledge.
//   - A take-over counts only if the process still owns the ledger after it. A process that slept meanwhile fences
//     the owner, which repairs that, and appends nothing by itself.
package takeover

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/storage"
)

// ErrNotOwner is the answer of a process that does not own the ledger: nothing was done. Another one may own it.
var ErrNotOwner error = &fault.Error{
	Kind: fault.Unavailable, Code: "not_owner", Message: "Another node has the organization", RetryAfter: time.Second,
}

// Store has the heads of ledgers (storage.Ledgers).
type Store interface {
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Append(batches []storage.Batch) storage.Pending
}

// Fences knows which ledgers the process has taken over. Its methods may be called concurrently.
// A nil *Fences is that of a process that does not share its store: it owns all ledgers, and takes over none.
type Fences struct {
	store Store
	owned func(id.Tenant) bool

	mu     sync.Mutex
	epochs map[id.Tenant]uint64 // that this process gave; about 40 bytes a ledger
}

// NewFences returns fences of a store, nil without owned.
func NewFences(store Store, owned func(id.Tenant) bool) *Fences {
	if owned == nil {
		return nil
	}
	return &Fences{store: store, owned: owned, epochs: make(map[id.Tenant]uint64)}
}

// Check returns ErrNotOwner for a ledger that the process does not own now, else nil.
func (f *Fences) Check(t id.Tenant) error {
	if f == nil || f.owned(t) {
		return nil
	}
	return ErrNotOwner
}

// takeOverTries bounds how often the head is read again because another process moved it.
const takeOverTries = 8

// TakeOver makes the process the only writer of a ledger, unless it is that already, and returns the head that the
// ledger had then. That is durable, because the epoch is raised by an append behind it. Another process may take the
// ledger over at any time afterwards; then an append on top of this head is refused. A nil *Fences returns no head.
//
// Errors: ErrNotOwner when the process lost the ledger meanwhile; fault.Unavailable when other writers are there all
// the time; those of the store.
func (f *Fences) TakeOver(ctx context.Context, t id.Tenant) (storage.Head, error) {
	if f == nil {
		return storage.Head{}, nil
	}
	for range takeOverTries {
		head, err := f.store.Head(ctx, t)
		if err != nil {
			return head, fmt.Errorf("take over: head: %w", err)
		}
		if f.Holds(t, head.Epoch) {
			return head, nil
		}
		raised := Raise(head)
		err = Await(ctx, f.store.Append([]storage.Batch{{Tenant: t, Expect: head, Head: raised}}))
		switch {
		case err == nil:
			f.Note(t, raised.Epoch)
			return raised, f.Check(t)
		case !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrUnknown):
			return head, fmt.Errorf("take over: %w", err)
		}
	}
	return storage.Head{}, &fault.Error{
		Kind: fault.Unavailable, Code: "unavailable", Message: "The organization is changing its node",
		RetryAfter: time.Second,
	}
}

// Holds reports whether the epoch of a ledger is the one that this process gave. Two processes never give the same
// one. A head with another epoch MUST NOT be appended to: its writer may append as well.
func (f *Fences) Holds(t id.Tenant, epoch uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.epochs[t]
	return found && known == epoch
}

// Note notes that an append of this process gave a ledger an epoch.
func (f *Fences) Note(t id.Tenant, epoch uint64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epochs[t] = epoch
}

// Forget makes the next use of a ledger take it over again.
func (f *Fences) Forget(t id.Tenant) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.epochs, t)
}

// ForgetAll is Forget for all ledgers that match.
func (f *Fences) ForgetAll(match func(id.Tenant) bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.epochs, func(t id.Tenant, _ uint64) bool { return match(t) })
}

// Raise returns a head to which a writer that knows the old one can't append.
func Raise(h storage.Head) storage.Head {
	h.Epoch++
	return h
}

// Await returns the outcome of an append of one batch. The outcome is unknown when ctx ends before; the append goes
// on.
func Await(ctx context.Context, p storage.Pending) error {
	err := syncs.Within(ctx, func() error { return p.Wait()[0] })
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", storage.ErrUnknown, err)
	}
	return err
}
