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
	// grace is how long a handler may take to answer once its context has ended. Only
	// the handler knows the outcome of its work.
	grace = 500 * time.Millisecond
	// maxLeft is how many handlers may be left behind at a time. Beyond it requests are
	// refused, so that goroutines do not pile up.
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

// LeftBehind returns how many handlers go on although their requests were answered.
func (b *Bound) LeftBehind() int64 { return b.left.Load() }

// AnsweredLate returns how many requests were answered without their handlers.
func (b *Bound) AnsweredLate() uint64 { return b.late.Load() }

// boundHandler runs h in a goroutine of its own. A call that ignores its context, as a read
// of a disk that does not answer does, is left behind when its time is over.
func (e *Edge) boundHandler(route string, h Handler) Handler {
	if e.Bound == nil {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if e.Bound.left.Load() >= maxLeft {
			return &fault.Error{Kind: fault.Overloaded, Code: "overloaded",
				Message: "Too many requests are still under way", RetryAfter: time.Second}
		}
		s := newStagedWriter(w)
		done := make(chan error, 1)
		own := cloneRouteContext(r)
		go func() { done <- callHandler(h, s, own) }()
		return e.awaitHandler(route, s, r, done)
	}
}

// cloneRouteContext returns a request with a route context of its own, because the router
// reuses its context once the request is answered.
func cloneRouteContext(r *http.Request) *http.Request {
	of := chi.RouteContext(r.Context())
	if of == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, of.Clone()))
}

// callHandler calls h. A panic becomes its error, http.ErrAbortHandler too.
func callHandler(h Handler, w http.ResponseWriter, r *http.Request) (err error) {
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

// awaitHandler returns when the handler has, or when its time is over and it has not begun
// to answer.
func (e *Edge) awaitHandler(route string, s *stagedWriter, r *http.Request, done <-chan error) error {
	timer := time.NewTimer(timeUntilLate(r))
	defer timer.Stop()
	for {
		select {
		case err := <-done:
			s.finishHandler()
			if err == http.ErrAbortHandler {
				panic(err)
			}
			return err
		case <-timer.C:
		}
		if left := timeUntilLate(r); left > 0 { // the deadline was moved
			timer.Reset(left)
			continue
		}
		if s.abandonHandler() {
			e.watchLateHandler(route, done)
			s.below.Header()["Connection"] = []string{"close"} // the handler may still read the body
			return errLate(r)
		}
		timer.Reset(time.Hour) // it sends its answer, which connections bound
	}
}

// timeUntilLate is how long the handler of a request still has.
func timeUntilLate(r *http.Request) time.Duration {
	at, _ := listener.ContextOf(r.Context()).Deadline()
	return time.Until(at) + grace
}

// watchLateHandler logs the end of a handler that was left behind.
func (e *Edge) watchLateHandler(route string, done <-chan error) {
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

// errLate is the answer to a request whose handler did not come back.
func errLate(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
			Message: "The request could not be answered in time"}
	}
	return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown",
		Message: "The request may still be carried out; look before you repeat it"}
}
