package edge

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/listener"
)

// Times of requests that are not answered in time.
const (
	// grace is how long a handler may take to answer once its context has ended: it
	// knows best what has become of its work.
	grace = 500 * time.Millisecond
	// maxLeft is how many handlers may go on behind requests that were answered without
	// them. Beyond it requests are refused, so that those don't pile up.
	maxLeft = 1024
)

// Bound is the time in which requests are answered. Its methods may be called
// concurrently.
type Bound struct {
	timeout time.Duration
	left    atomic.Int64  // handlers that go on behind an answer
	late    atomic.Uint64 // requests answered without their handler
}

// NewBound returns a bound of a timeout, more than 0.
func NewBound(timeout time.Duration) *Bound { return &Bound{timeout: timeout} }

// Left returns how many handlers go on although their requests were answered.
func (b *Bound) Left() int64 { return b.left.Load() }

// Late returns how many requests were answered without their handlers.
func (b *Bound) Late() uint64 { return b.late.Load() }

// bounded returns h in a goroutine of its own: a call of it that does not look at its
// context (a read of a disk that does not answer can't) is left behind in time.
func (e *Edge) bounded(route string, h Handler) Handler {
	if e.Bound == nil {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if e.Bound.left.Load() >= maxLeft {
			return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: "Too many requests are still under way", RetryAfter: time.Second}
		}
		s := newStage(w)
		done := make(chan error, 1)
		own := ownRoute(r)
		go func() { done <- perform(h, s, own) }()
		return e.await(route, s, r, done)
	}
}

// ownRoute returns a request with a route of its own: that of the router goes to
// another request when the answer is sent.
func ownRoute(r *http.Request) *http.Request {
	of := chi.RouteContext(r.Context())
	if of == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, of.Clone()))
}

// perform calls h. A panic becomes its error, http.ErrAbortHandler too.
func perform(h Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch p := recover(); p {
		case nil:
		case http.ErrAbortHandler:
			err = http.ErrAbortHandler
		default:
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return h(w, r)
}

// await returns when the handler has, or when its time is over and it has not begun
// to answer.
func (e *Edge) await(route string, s *stage, r *http.Request, done <-chan error) error {
	timer := time.NewTimer(untilLate(r))
	defer timer.Stop()
	for {
		select {
		case err := <-done:
			s.end()
			if err == http.ErrAbortHandler {
				panic(err)
			}
			return err
		case <-timer.C:
		}
		if left := untilLate(r); left > 0 { // the deadline was moved
			timer.Reset(left)
			continue
		}
		if s.leave() {
			e.awaitLate(route, done)
			s.below.Header()["Connection"] = []string{"close"} // the handler may still read the body
			return late(r)
		}
		timer.Reset(time.Hour) // it sends its answer, which connections bound
	}
}

// untilLate is how long the handler of a request still has.
func untilLate(r *http.Request) time.Duration {
	at, _ := listener.Of(r.Context()).Deadline()
	return time.Until(at) + grace
}

// awaitLate waits for a handler that nobody waits for any more.
func (e *Edge) awaitLate(route string, done <-chan error) {
	e.Bound.late.Add(1)
	e.Bound.left.Add(1)
	go func() {
		err := <-done
		e.Bound.left.Add(-1)
		if e.Logger != nil {
			e.Logger.Warn("a request ended after it was answered", "route", route, "err", err)
		}
	}()
}

// late is the answer to a request whose handler did not come back.
func late(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The request could not be answered in time"}
	}
	return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", Message: "The request may still be carried out; look before you repeat it"}
}
