package nodestest

import (
	"math"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// Outcome is the result of a call as its client saw it.
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

// Unknown is the outcome of a call without an answer, which may have had its effect or may have it at any later time.
func Unknown() Outcome { return Outcome{} }

// Refused is the outcome of a call that had no effect.
func Refused() Outcome { return Outcome{kind: refused} }

// Created is the outcome of an event that was stored under a number, counted from 0.
func Created(number int64) Outcome { return Outcome{kind: created, number: number} }

// Replayed is the outcome of an event that had been stored before.
func Replayed() Outcome { return Outcome{kind: replayed} }

// Shown is the outcome of a read that returned a head.
func Shown(size int64) Outcome { return Outcome{kind: shown, number: size} }

// Granted is the outcome of a call that used an approval.
func Granted(grant string) Outcome { return Outcome{kind: granted, grant: grant} }

// History records the calls of all clients of a service. Check checks whether the service could have performed them one at
// a time, each between its call and its return (linearizability). It checks three models, each as far as clients can tell:
//
//   - An event is stored once. The call that stored it is told so, and later calls are told that it was already stored.
//   - A log only grows: numbers and sizes of heads increase in the order of calls that do not overlap. Numbers may be
//     missing, because other events are stored as well.
//   - An approval is consumed once, and every use gets the same grant.
//
// The zero value is an empty history. Its methods may be called concurrently.
type History struct {
	mu        sync.Mutex
	began     time.Time
	events    map[string][]porcupine.Operation // by log and event
	logs      map[string][]porcupine.Operation // by log; only calls with numbers
	approvals map[string][]porcupine.Operation // by log and approval
}

// Call is a call that has begun. Append, Read or Consume must be called once, when it returns.
type Call struct {
	history *History
	log     string
	name    string // of the event or approval; empty for a head
	begin   int64
}

// Begin records the begin of a call. name is the name of an event or an approval, or empty for a read of the log's head.
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

// now returns the monotonic time in nanoseconds.
func (h *History) now() int64 { return int64(time.Since(h.began)) }

// Append records the return of a call that sent an event.
func (c Call) Append(o Outcome) {
	c.history.mu.Lock()
	defer c.history.mu.Unlock()
	key := c.log + "/" + c.name
	c.history.events[key] = append(c.history.events[key], c.operation(o))
	if o.kind == created {
		c.history.logs[c.log] = append(c.history.logs[c.log], c.operation(o))
	}
}

// Read records the return of a call that read a head. A read without an answer is ignored.
func (c Call) Read(o Outcome) {
	c.history.mu.Lock()
	defer c.history.mu.Unlock()
	if o.kind == shown {
		c.history.logs[c.log] = append(c.history.logs[c.log], c.operation(o))
	}
}

// Consume records the return of a call that used an approval.
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
