package admission

import "context"

// Contention allows tests to create contention.
type Contention = contention

// NewContention returns contention before the first request.
func NewContention() *Contention { return new(contention) }

// Note records a request of a tenant.
func (c *contention) Note(t Tenant) { c.noteTenant(t) }

// Contended reports whether there is contention.
func (c *contention) Contended() bool { return c.isContended() }

// NewProcessors returns a queue with n slots in total.
func NewProcessors(c *Contention, n int) *FairQueue { return newFairQueue(c, n, max(1, n-1)) }

// NewSlots returns a queue with a share per tenant.
func NewSlots(c *Contention, share int) *FairQueue { return newFairQueue(c, 0, share) }

// Slot is the slot of one request.
type Slot = slot

// NewSlot returns a slot of weight 1 that is not acquired yet.
func NewSlot(q *FairQueue, t Tenant) *Slot { return &slot{queue: q, tenant: t, weight: 1} }

// Acquire waits for the slot.
func (s *slot) Acquire(ctx context.Context) error { return s.acquireSlot(ctx) }

// Lend lends the slot.
func (s *slot) Lend() { s.lendToOthers() }

// Keep ends Lend.
func (s *slot) Keep() bool { return s.keepIfHeld() }

// Release releases the slot.
func (s *slot) Release() { s.releaseSlot() }
