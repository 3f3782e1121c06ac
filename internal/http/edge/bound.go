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

// Bounds of handlers that do not return in time.
const (
	// grace is how long a handler may take to respond after its context has ended. Only
	// the handler knows the outcome of its work.
	grace = 500 * time.Millisecond
	// maxAbandoned bounds the number of abandoned handlers. Beyond it requests are
	// rejected, so that goroutines do not accumulate.
	maxAbandoned = 1024
)

// Bound bounds the time of requests. All methods may be called
// concurrently.
type Bound struct {
	timeout   time.Duration
	abandoned atomic.Int64  // handlers that still run after the response
	late      atomic.Uint64 // responses without the handler
}

// NewBound returns a bound of a positive timeout.
func NewBound(timeout time.Duration) *Bound { return &Bound{timeout: timeout} }

// LeftBehind returns the number of handlers that still run after the response to their requests.
func (b *Bound) LeftBehind() int64 { return b.abandoned.Load() }

// AnsweredLate returns how many requests got a response without their handlers.
func (b *Bound) AnsweredLate() uint64 { return b.late.Load() }

// boundHandler runs h in a separate goroutine. If a call ignores its context, such as a read
// from a hanging disk, its handler is abandoned when the time has expired.
func (e *Edge) boundHandler(route string, h Handler) Handler {
	if e.Bound == nil {
		return h
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		if e.Bound.abandoned.Load() >= maxAbandoned {
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

// cloneRouteContext returns a request with a copy of the route context, because the router
// reuses its context after the response.
func cloneRouteContext(r *http.Request) *http.Request {
	of := chi.RouteContext(r.Context())
	if of == nil {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), chi.RouteCtxKey, of.Clone()))
}

// callHandler calls h and returns a panic, including http.ErrAbortHandler, as an error.
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

// awaitHandler returns when the handler has returned, or when its time has expired and it has not begun
// to respond.
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
		if rest := timeUntilLate(r); rest > 0 { // the deadline was moved
			timer.Reset(rest)
			continue
		}
		if s.abandonHandler() {
			e.watchLateHandler(route, done)
			s.below.Header()["Connection"] = []string{"close"} // the handler may still read the body
			return errLate(r)
		}
		timer.Reset(time.Hour) // it sends its response, and the connection's deadline applies
	}
}

// timeUntilLate returns the remaining time of a request's handler.
func timeUntilLate(r *http.Request) time.Duration {
	at, _ := listener.ContextOf(r.Context()).Deadline()
	return time.Until(at) + grace
}

// watchLateHandler logs the end of an abandoned handler.
func (e *Edge) watchLateHandler(route string, done <-chan error) {
	e.Bound.late.Add(1)
	e.Bound.abandoned.Add(1)
	go func() {
		err := <-done
		e.Bound.abandoned.Add(-1)
		if e.Logger != nil {
			e.Logger.Warn("a handler returned after the response", "route", route, "err", err)
		}
	}()
}

// errLate is the response to a request whose handler did not return in time.
func errLate(r *http.Request) error {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
			Message: "The request could not be answered in time"}
	}
	return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown",
		Message: "The request may still take effect: check before you retry"}
}
