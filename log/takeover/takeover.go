// Package takeover fences other writers of ledgers, for processes that share a store. It hides the epochs by which that
// works from package log, which asks only whether a ledger may be used and from which head it continues.
//
// Invariants:
//
//   - Safety comes from the guard of each append: with or without this package, two writers never fork a ledger.
//   - After a ledger was taken over, no append of an earlier owner takes effect. So the head that is read then contains all
//     events that another process has acknowledged or will acknowledge.
//   - A take-over only counts if the process still owns the ledger afterwards. A process that was suspended in the meantime
//     fences the new owner, which repairs that, and appends nothing itself.
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

// ErrNotOwner is returned if the process does not own the ledger. Nothing was done. Another process may own it.
var ErrNotOwner error = &fault.Error{
	Kind: fault.Unavailable, Code: "not_owner", Message: "Another node has the organization", RetryAfter: time.Second,
}

// Store reads and appends heads of ledgers (storage.Ledgers).
type Store interface {
	Head(ctx context.Context, t id.Tenant) (storage.Head, error)
	Append(batches []storage.Batch) storage.Pending
}

// Fences records which ledgers the process has taken over. Methods may be called concurrently. A nil *Fences belongs to
// a process that does not share its store: it owns all ledgers and takes over none.
type Fences struct {
	store Store
	owned func(id.Tenant) bool

	mu     sync.Mutex
	epochs map[id.Tenant]uint64 // raised by this process; about 40 bytes per ledger
}

// NewFences returns the fences of a store, or nil if owned is nil.
func NewFences(store Store, owned func(id.Tenant) bool) *Fences {
	if owned == nil {
		return nil
	}
	return &Fences{store: store, owned: owned, epochs: make(map[id.Tenant]uint64)}
}

// Check returns ErrNotOwner if the process does not own a ledger now.
func (f *Fences) Check(t id.Tenant) error {
	if f == nil || f.owned(t) {
		return nil
	}
	return ErrNotOwner
}

// takeOverTries bounds how often the head is read again because another process changed it.
const takeOverTries = 8

// TakeOver makes the process the only writer of a ledger, unless it is already, and returns the ledger's head. The head
// is durable, because an append on top of it raises the epoch. Another process may take the ledger over at any time
// afterwards; an append on top of this head is then rejected. A nil *Fences returns no head.
//
// It returns ErrNotOwner if the process lost the ledger in the meantime, fault.Unavailable if other writers keep
// changing the head, or an error of the store.
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

// Holds reports whether this process raised a ledger to the given epoch. No two processes raise it to the same epoch. A
// head with another epoch must not be appended to, because its writer may append as well.
func (f *Fences) Holds(t id.Tenant, epoch uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, found := f.epochs[t]
	return found && known == epoch
}

// Note records that an append of this process raised a ledger to an epoch.
func (f *Fences) Note(t id.Tenant, epoch uint64) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epochs[t] = epoch
}

// Forget makes the next load of a ledger take it over again.
func (f *Fences) Forget(t id.Tenant) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.epochs, t)
}

// ForgetAll calls Forget for all ledgers that match.
func (f *Fences) ForgetAll(match func(id.Tenant) bool) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.epochs, func(t id.Tenant, _ uint64) bool { return match(t) })
}

// Raise returns h with the next epoch. A writer that knows h can't append to it.
func Raise(h storage.Head) storage.Head {
	h.Epoch++
	return h
}

// Await returns the outcome of an append of one batch. If ctx ends first, the outcome is unknown and the append
// continues.
func Await(ctx context.Context, p storage.Pending) error {
	err := syncs.Within(ctx, func() error { return p.Wait()[0] })
	if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", storage.ErrUnknown, err)
	}
	return err
}
