package nodestest

import (
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Outcome is the answer that a client got.
type Outcome struct {
	kind   kind
	number int64  // of an event, or the size of a head
	grant  string // of a consumed approval
}

type kind uint8

const (
	unknown kind = iota
	refused
	created
	replayed
	shown
	granted
)

// Unknown is the outcome of a call that was not answered, or that may have been done.
func Unknown() Outcome { return Outcome{} }

// Refused is the outcome of a call without an effect.
func Refused() Outcome { return Outcome{kind: refused} }

// Created is the outcome of an event that was stored under a number, from 0.
func Created(number int64) Outcome { return Outcome{kind: created, number: number} }

// Replayed is the outcome of an event that was stored before.
func Replayed() Outcome { return Outcome{kind: replayed} }

// Shown is the outcome of a reader who got a head.
func Shown(size int64) Outcome { return Outcome{kind: shown, number: size} }

// Granted is the outcome of the use of an approval.
func Granted(grant string) Outcome { return Outcome{kind: granted, grant: grant} }

// History is the calls of all clients. The zero value is an empty history. Its methods may be called concurrently.
type History struct {
	mu        sync.Mutex
	began     time.Time
	events    map[string][]porcupine.Operation // by log and event
	logs      map[string][]porcupine.Operation // by log; calls with numbers alone
	approvals map[string][]porcupine.Operation // by log and approval
}

// Call is a call that has begun. Its method is called once.
type Call struct {
	history *History
	log     string
	name    string // of the event or approval, "" for a head
	begin   int64
}

// Begin notes that a call begins. name is that of an event or an approval; "" stands for a read of the log's head.
func (h *History) Begin(log, name string) Call {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.began.IsZero() {
		h.began = time.Now()
		h.events, h.logs = map[string][]porcupine.Operation{}, map[string][]porcupine.Operation{}
		h.approvals = map[string][]porcupine.Operation{}
	}
	return Call{history: h, log: log, name: name, begin: h.now()}
}

// now is the time of the steady clock, in nanoseconds.
func (h *History) now() int64 { return int64(time.Since(h.began)) }

// Append notes the return of a call that sent an event. Read is for a call that read a head, and Consume for one that
// used an approval.
func (c Call) Append(o Outcome) {
	c.history.mu.Lock()
	defer c.history.mu.Unlock()
	key := c.log + "/" + c.name
	c.history.events[key] = append(c.history.events[key], c.operation(o))
	if o.kind == created {
		c.history.logs[c.log] = append(c.history.logs[c.log], c.operation(o))
	}
}

// Read is described at Append. A read without an answer is left out.
func (c Call) Read(o Outcome) {
	c.history.mu.Lock()
	defer c.history.mu.Unlock()
	if o.kind == shown {
		c.history.logs[c.log] = append(c.history.logs[c.log], c.operation(o))
	}
}

// Consume is described at Append.
func (c Call) Consume(o Outcome) {
	c.history.mu.Lock()
	defer c.history.mu.Unlock()
	key := c.log + "/" + c.name
	c.history.approvals[key] = append(c.history.approvals[key], c.operation(o))
}

func (c Call) operation(o Outcome) porcupine.Operation {
	end := c.history.now()
	if o.kind == unknown {
		end = math.MaxInt64
	}
	return porcupine.Operation{Input: c.name, Call: c.begin, Output: o, Return: end}
}
