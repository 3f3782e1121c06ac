package admission

import (
	"net/http"
	"time"
)

// Class determines how the requests of a route are admitted. Every request passes the load control through
// Class.Serve.
type Class struct {
	Control *Control
	Limit   *Limit
	Pacer   *RefusalPacer // if nil, rejections are not delayed

	// MaxBody is the maximum body size of the route, in bytes. If zero, the route takes no body.
	MaxBody int64
	// BodyRead indicates that the body was read before Serve. It still weighs.
	BodyRead bool
	// WeighBody makes the body count in the limit too.
	WeighBody bool
	// Queue is where a request waits for its slot. If nil, Control.Slots.
	Queue *FairQueue
	// Yields makes a request that had to wait for its slot pause before it computes. Go
	// polls the network only on an idle processor, so a tenant that fills every
	// pause with its next request would delay the first bytes of other tenants' requests.
	Yields bool
	// Waits indicates that requests only wait and need no slot.
	Waits bool
	// Anonymous indicates that all callers share one limit, which is checked before the tenant
	// is known. The limit does not include sending the response, so that slow readers do not block
	// others.
	Anonymous bool
}

// Call is one request of a surface.
type Call interface {
	// Identify returns the tenant, or an error if the caller is rejected. The tenant of an unknown
	// caller is zero.
	Identify() (Tenant, error)
	// Handle handles the request.
	Handle() error
}

// Sender is a Call whose response is sent after Handle. Its slot is lent in the meantime.
type Sender interface{ Send() error }

// Serve identifies the caller, admits the request and handles it while it holds a slot. r
// is the request of the call; its Body is replaced. Serve returns the error of the step
// that failed, and fault.Overloaded if the limit is reached. It delays floods of errors.
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

// sendAnswer sends the response of a Sender while the slot is lent.
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

// handleInSlot handles a request in a slot. A small body is read before the slot is acquired, because a slow
// client needs no slot. A large one is read in the slot, because that takes processor time.
func (c *Class) handleInSlot(r *http.Request, call Call, s *slot) error {
	if c.Waits {
		return call.Handle()
	}
	s.weight = c.slotWeight(r.ContentLength)
	hasBody := c.MaxBody > 0 && r.ContentLength != 0 && !c.BodyRead
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

// Bytes of a body that weigh as much as one request. In the limit they represent memory. In
// the queue they represent processor time: a body of 150 KiB takes the whole share of a tenant
// on two processors, so that hashing bodies never occupies all processors.
const (
	limitUnit = 64 << 10
	slotUnit  = 16 << 10
)

// boundBody returns the maximum length of a body. A length of -1 means unknown.
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
