// Package edge is shared by all HTTP surfaces. It contains the route tables and the
// router, maps errors to statuses, assigns request IDs, logs requests,
// reads and checks bodies, and serves the OpenAPI document of the surfaces (OpenAPI). It hides the router, deadlines and
// the forwarding of requests to other nodes from handlers.
//
// A surface lists its routes in one Table and mounts it on the Router of its listener.
// For each route it provides a Handler that checks the permission of the route.
//
// Invariants:
//
//   - An error response is {"error", "code"?, "request_id"? (5xx)} with the
//     text of the fault. The cause of a 5xx is only in the log line with the same
//     request ID.
//   - Every response has an X-Request-Id that was generated here, never one from the client, except responses of the
//     AuthZEN API (package ingest), whose protocol demands the client's.
//   - A log line contains no value of a body, header, query or path. It has
//     the route's pattern instead of the path.
//   - If a handler fails or panics after its response has begun, the
//     connection is closed, so that clients detect the incomplete response.
//   - A request gets a response within Bound, or 503 if its work is not done by then.
//     The time in which its body arrives does not count.
//   - 503 and rate_limited responses have a Retry-After; plan_limit never has one.
package edge

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/telemetry"
)

// RequestIDHeader is the header of every response that contains the request ID.
const RequestIDHeader = "X-Request-Id"

// Handler responds to a request, or returns an error and writes nothing.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Edge converts Handlers to http.Handlers. It must be configured before use and may
// be copied. The zero value is usable.
type Edge struct {
	Logger    *slog.Logger     // if nil, requests are not logged
	Clock     func() time.Time // for durations; if nil, time.Now
	Challenge string           // WWW-Authenticate of 401 responses, such as "Bearer"; may be ""
	Metrics   *Metrics         // if nil, requests are not counted
	Tracer    telemetry.Tracer // if zero, requests are not traced

	// Bound bounds the time of each request. All edges of a process share it. If nil, there is no bound.
	Bound *Bound

	// Passer forwards requests for organizations that other nodes own. If nil, none are forwarded.
	Passer passer

	// Last reports whether responses from now on are the last ones of their
	// connections. If nil, they are not.
	Last func() bool

	// Quiet logs responses below 500 and overload
	// responses at debug level, for routes with many requests.
	Quiet bool
}

// Handle adds a request ID, a log line, metrics, a span, the mapping of errors and
// the deadline of Bound to h. It is for handlers outside of a router: their route is "".
func (e *Edge) Handle(h Handler) http.Handler {
	return e.serveRoute("", Apart, nil, h)
}

// serveRoute is Handle for a route in one of the modes. wait is as Surface.Wait.
func (e *Edge) serveRoute(route string, mode Mode, wait func(*http.Request) time.Duration, h Handler) http.Handler {
	if mode == Apart {
		h = e.boundHandler(route, h)
	}
	if mode != LongPoll {
		wait = nil
	}
	return e.wrapHandler(h, newRouteMeter(e.Metrics, route), wait)
}

// wrapHandler wraps h. If wait is not nil, it returns the time that a request may take in addition to
// Bound.
func (e *Edge) wrapHandler(h Handler, m *routeMeter, wait func(*http.Request) time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e.Bound != nil {
			deadline := time.Now().Add(e.Bound.timeout)
			if wait != nil {
				deadline = deadline.Add(wait(r))
			}
			ctx := listener.WithContext(r.Context(), deadline)
			defer ctx.Release()
			r = r.WithContext(ctx)
		}
		a := &answer{ResponseWriter: w, id: [1]string{newRequestID()}, began: e.currentTime(), meter: m, last: e.Last}
		m.countBegin()
		w.Header()[RequestIDHeader] = a.id[:]
		if e.Tracer.Enabled() {
			r = e.startSpan(a, r)
		}
		defer e.finishRequest(a, r)
		if err := e.serveOrPass(h, a, r); err != nil {
			e.answerError(a, r, err)
		}
	})
}

// Plain returns a Handler for an http.Handler, which handles its own errors.
func Plain(h http.Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

// newRequestID returns 24 random hex digits. They need not be unpredictable.
func newRequestID() string {
	var random [12]byte
	var digits [24]byte
	binary.LittleEndian.PutUint64(random[:], rand.Uint64())
	binary.LittleEndian.PutUint32(random[8:], rand.Uint32())
	hex.Encode(digits[:], random[:])
	return string(digits[:])
}

func (e *Edge) currentTime() time.Time {
	if e.Clock == nil {
		return time.Now()
	}
	return e.Clock()
}

// Answered is the error of a handler that has written its answer itself, such as a page. The edge logs and counts the
// cause as it does for any other answer.
type Answered struct{ Cause error }

// Error implements error.
func (a *Answered) Error() string { return a.Cause.Error() }

// Unwrap returns the cause.
func (a *Answered) Unwrap() error { return a.Cause }

// answerError responds with an error, or closes the connection if the response has begun.
func (e *Edge) answerError(a *answer, r *http.Request, err error) {
	f := requestFault(r.Context(), err)
	a.failure, a.cause = f, err
	if answered := (*Answered)(nil); errors.As(err, &answered) {
		a.cause = answered.Cause
		return
	}
	if a.status != 0 {
		a.aborted = true
		return
	}
	e.writeError(a, f)
}

// requestFault is fault.Of, with EndedEarly applied if the request's context has ended.
func requestFault(ctx context.Context, err error) *fault.Error {
	if ctx.Err() != nil {
		return fault.Of(EndedEarly(err))
	}
	return fault.Of(err)
}

// EndedEarly returns err, or fault.Unavailable if err only means that the context of the request has
// ended.
func EndedEarly(err error) error {
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if ended && fault.Is(err, fault.Internal) {
		return &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
			Message: "The request ended before its response", Err: err}
	}
	return err
}

// finishRequest counts and logs the request. It also runs if the handler panicked.
func (e *Edge) finishRequest(a *answer, r *http.Request) {
	if p := recover(); p != nil && p != http.ErrAbortHandler {
		e.answerError(a, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
	} else if p != nil {
		a.aborted = true
	}
	took := e.currentTime().Sub(a.began)
	a.meter.observeEnd(a, took)
	a.endSpan()
	e.logRequest(a, r, took)
	if a.aborted {
		panic(http.ErrAbortHandler)
	}
}

func (e *Edge) logRequest(a *answer, r *http.Request, took time.Duration) {
	level := e.logLevel(a.failure)
	if e.Logger == nil || !e.Logger.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("request_id", a.id[0]),
		slog.String("method", knownMethod(r)),
		slog.String("route", a.meter.route),
		slog.Int("status", max(a.status, http.StatusOK)),
		slog.Int64("bytes", a.bytes),
		slog.Duration("took", took),
	}
	if f := a.failure; f != nil && statusOfKind(f.Kind) >= 500 {
		attrs = append(attrs, slog.String("err", describeCause(f, a.cause)))
	} else if f != nil {
		attrs = append(attrs, slog.String("refused", f.Message))
	}
	e.Logger.LogAttrs(r.Context(), level, "request", attrs...)
}

// describeCause returns the text of err, which contains f. The text of f alone may lack the cause, if both are wrapped by
// the same error: fmt.Errorf("%w: %w", storage.ErrUnavailable, cause).
func describeCause(f *fault.Error, err error) string {
	if whole := err.Error(); strings.Contains(whole, f.Error()) {
		return whole
	}
	return f.Error()
}

// logLevel returns Error for faults that an operator must examine, and Warn for temporary faults.
func (e *Edge) logLevel(f *fault.Error) slog.Level {
	switch {
	case e.Quiet && (f == nil || statusOfKind(f.Kind) < 500 || f.Kind == fault.Overloaded):
		return slog.LevelDebug
	case f == nil || statusOfKind(f.Kind) < 500:
		return slog.LevelInfo
	case f.Kind == fault.Internal:
		return slog.LevelError
	}
	return slog.LevelWarn
}

// otherMethod represents methods that HTTP does not define.
const otherMethod = "other"

// knownMethod returns the method of a request, or "other" if HTTP does not
// define it, because then the client chose the text.
func knownMethod(r *http.Request) string {
	for _, m := range listMethods() {
		if r.Method == m {
			return m
		}
	}
	return otherMethod
}

// answer is a ResponseWriter that records status, length and failure.
type answer struct {
	http.ResponseWriter
	id      [1]string // value of RequestIDHeader
	began   time.Time
	status  int // 0 if nothing has been written yet
	bytes   int64
	failure *fault.Error
	cause   error // contains failure
	aborted bool
	meter   *routeMeter
	span    telemetry.Span
	last    func() bool
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if status >= 200 {
		a.beginAnswer(status)
	}
	a.ResponseWriter.WriteHeader(status)
}

// beginAnswer records the status of the response, unless it has begun already.
func (a *answer) beginAnswer(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	if a.last != nil && a.last() {
		a.Header().Set("Connection", "close")
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.beginAnswer(http.StatusOK)
	n, err := a.ResponseWriter.Write(b)
	a.bytes += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (a *answer) Flush() {
	a.beginAnswer(http.StatusOK)
	_ = http.NewResponseController(a.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

// Unwrap returns the wrapped writer, for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
