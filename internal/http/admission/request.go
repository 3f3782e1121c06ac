package admission

import (
	"net/http"
	"time"
)

// Class says how the requests of a route are admitted. Class.Serve is the one way of a
// request through the load control.
type Class struct {
	Control *Control
	Limit   *Limit
	Pacer   *RefusalPacer // nil delays no refusal

	// MaxBody is the largest body of the route, in bytes; 0 for none.
	MaxBody int64
	// WeighBody says that a body has its weight in the limit too.
	WeighBody bool
	// Queue is where a request waits for its slot, Control.Reads for example; nil: Control.Slots.
	Queue *FairQueue
	// Yields says that a request that had to wait for its slot pauses before it computes. Go
	// polls the network only on a processor without work, so a tenant that fills every
	// pause with its next request delays the first byte of the others'.
	Yields bool
	// Waits says that a request does nothing but wait, and needs no slot.
	Waits bool
	// Anonymous says that the limit is one for all callers, and is checked before the tenant
	// is known. It does not hold while the answer is sent, so that slow readers shut no
	// other reader out.
	Anonymous bool
}

// Call is one request of a surface.
type Call interface {
	// Identify returns the tenant, or why the caller is refused. The tenant of an unknown
	// caller is zero.
	Identify() (Tenant, error)
	// Handle handles the request.
	Handle() error
}

// Sender is a Call whose answer is sent after Handle. Its slot is lent meanwhile.
type Sender interface{ Send() error }

// Serve identifies the caller, admits the request and handles it while it has its slot. r
// is the request of the call; its Body is replaced. Serve returns the error of the step
// that failed, fault.Overloaded when the limit is reached. Floods of errors are delayed.
func (c *Class) Serve(r *http.Request, call Call) error {
	s, _ := c.Control.unused.Get().(*slot)
	if s == nil {
		s = new(slot)
	}
	if s.queue = c.Queue; s.queue == nil {
		s.queue = c.Control.Slots
	}
	err := c.handleAndSend(r, call, s)
	t := s.tenant.ID
	if !s.hasBody { // otherwise the request's body may still use it
		*s = slot{}
		c.Control.unused.Put(s)
	}
	if err != nil && c.Pacer != nil && !isElsewhere(err) {
		c.Pacer.DelayRefusal(r.Context(), t)
	}
	return err
}

func (c *Class) handleAndSend(r *http.Request, call Call, s *slot) error {
	defer s.releaseSlot()
	if err := c.handleWithinLimit(r, call, s); err != nil || !c.Anonymous {
		return err
	}
	return sendAnswer(call, s)
}

// sendAnswer sends the answer of a call that has not sent it, with the slot lent.
func sendAnswer(call Call, s *slot) error {
	sender, ok := call.(Sender)
	if !ok {
		return nil
	}
	s.lendToOthers()
	return sender.Send()
}

// handleWithinLimit handles a request under the limit of its class.
func (c *Class) handleWithinLimit(r *http.Request, call Call, s *slot) (err error) {
	if !c.Anonymous {
		if s.tenant, err = call.Identify(); err != nil {
			return err
		}
	}
	limited, weight := s.tenant.ID, c.limitWeight(r.ContentLength)
	if err := c.Limit.Acquire(limited, weight); err != nil {
		return err
	}
	defer c.Limit.Release(limited, weight)
	if !c.Anonymous {
		if err := c.handleInSlot(r, call, s); err != nil {
			return err
		}
		return sendAnswer(call, s)
	}
	if s.tenant, err = call.Identify(); err != nil {
		return err
	}
	return c.handleInSlot(r, call, s)
}

// handleInSlot handles a request in a slot. A light body is read before, because a slow
// sender needs no slot; a heavy one in the slot, because it takes a processor too.
func (c *Class) handleInSlot(r *http.Request, call Call, s *slot) error {
	if c.Waits {
		return call.Handle()
	}
	s.weight = c.slotWeight(r.ContentLength)
	hasBody := c.MaxBody > 0 && r.ContentLength != 0
	if !hasBody || bodyUnits(c.boundBody(r.ContentLength), limitUnit) > 1 {
		if err := s.acquireSlot(r.Context()); err != nil {
			return err
		}
		if s.waited && c.Yields {
			time.Sleep(time.Microsecond)
		}
	}
	if hasBody {
		s.hasBody = true
		s.body = slotBody{ReadCloser: r.Body, ctx: r.Context(), slot: s}
		r.Body = &s.body
	}
	if err := call.Handle(); s.lost == nil {
		return err
	}
	return s.lost
}

// Bytes of a body that weigh as much as one request. In the limit they stand for memory. In
// the queue they stand for processor time: a body of 150 KiB takes a tenant's whole share
// of two processors, so that hashing it never has all processors.
const (
	limitUnit = 64 << 10
	slotUnit  = 16 << 10
)

// boundBody returns the length that a body has at most. -1 stands for an unknown length.
func (c *Class) boundBody(length int64) int64 {
	if length < 0 || length > c.MaxBody {
		return c.MaxBody
	}
	return length
}

func bodyUnits(length int64, unit int64) int { return 1 + int(length/unit) }

func (c *Class) limitWeight(length int64) int {
	if !c.WeighBody {
		return 1
	}
	return bodyUnits(c.boundBody(length), limitUnit)
}

func (c *Class) slotWeight(length int64) int {
	if c.Queue != nil {
		return 1
	}
	return bodyUnits(c.boundBody(length), slotUnit)
}
