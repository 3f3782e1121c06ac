// Package edge is shared by all HTTP surfaces. It has the table of their routes and the
// router, turns errors into statuses, gives each request its id and its log line,
// reads and checks bodies, and serves the OpenAPI document of the surfaces (OpenAPI).
//
// A surface lists its routes in one Table and mounts it on the Router of its listener.
// For each route it gives a Handler that checks the permission of the route.
//
// Invariants:
//
//   - An error answer is {"error", "code"?, "request_id"? (5xx)} and holds the
//     fault's own text; the cause of a 5xx is only in the log line with the same
//     request id.
//   - Every answer has an X-Request-Id made here; none is taken from outside.
//   - A log line holds no value of a body, no header, no query and no path: the
//     route's pattern stands for the path.
//   - A handler that fails or panics after its answer has begun ends the
//     connection, so that half an answer is not taken for a whole one.
//   - A request is answered within Bound, with 503 when its work is not done by then.
//     The time in which its body arrives does not count.
//   - 503 and rate_limited answers have a Retry-After, plan_limit never has one.
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

// RequestIDHeader names the header of every answer that holds its request id.
const RequestIDHeader = "X-Request-Id"

// Handler answers a request, or returns why it can't and writes nothing.
type Handler func(w http.ResponseWriter, r *http.Request) error

// Edge turns Handlers into http.Handlers. It is configured before use and may
// be copied; the zero value works and logs nothing.
type Edge struct {
	Logger    *slog.Logger     // nil discards
	Clock     func() time.Time // for durations; nil is time.Now
	Challenge string           // WWW-Authenticate of 401 answers, such as "Bearer"; "" for none
	Metrics   *Metrics         // nil counts nothing
	Tracer    telemetry.Tracer // the zero value traces nothing

	// Bound, when set, is the time in which each request is answered, one for all edges
	// of a process.
	Bound *Bound

	// Passer, when set, passes requests for organizations that other nodes own.
	Passer passer

	// Last, when set, reports whether answers from now on are the last ones of their
	// connections, and have to say so.
	Last func() bool

	// Quiet is for routes of many requests: their answers below 500 and their overload
	// answers are logged at debug level, not at info.
	Quiet bool
}

// Handle gives h an id, a log line, metrics, a span, the translation of its errors and
// the time that Bound gives. It is for handlers that no router has: their route is "".
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

// wrapHandler wraps h. wait, if not nil, returns the time that a request may take beyond
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

// Plain is a Handler of one that deals with its errors itself.
func Plain(h http.Handler) Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		h.ServeHTTP(w, r)
		return nil
	}
}

// newRequestID returns 24 random hex digits, which need not be hard to guess.
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

// answerError answers with an error, or drops the connection when an answer has begun.
func (e *Edge) answerError(a *answer, r *http.Request, err error) {
	f := requestFault(r.Context(), err)
	a.failure, a.cause = f, err
	if a.status != 0 {
		a.aborted = true
		return
	}
	e.writeError(a, f)
}

// requestFault is fault.Of, but for a request that ended before its work did.
func requestFault(ctx context.Context, err error) *fault.Error {
	if ctx.Err() != nil {
		return fault.Of(EndedEarly(err))
	}
	return fault.Of(err)
}

// EndedEarly returns err. An error that says only that the context of a request has ended
// becomes fault.Unavailable.
func EndedEarly(err error) error {
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if ended && fault.Is(err, fault.Internal) {
		return &fault.Error{Kind: fault.Unavailable, Code: "unavailable",
			Message: "The request ended before it was answered", Err: err}
	}
	return err
}

// finishRequest counts and logs the request; it also runs when the handler panicked.
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

// describeCause returns the text of an error from which f was taken. f alone may lack the cause, which can be next to it in
// the chain: fmt.Errorf("%w: %w", storage.ErrUnavailable, cause).
func describeCause(f *fault.Error, err error) string {
	if whole := err.Error(); strings.Contains(whole, f.Error()) {
		return whole
	}
	return f.Error()
}

// logLevel is Error for faults that an operator has to look at, Warn for faults that pass.
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

// otherMethod stands for methods that HTTP does not define.
const otherMethod = "other"

// knownMethod returns the method of a request, "other" for a method that HTTP does not
// define, because that is a text of the client.
func knownMethod(r *http.Request) string {
	for _, m := range listMethods() {
		if r.Method == m {
			return m
		}
	}
	return otherMethod
}

// answer is a ResponseWriter that notes status, length and failure.
type answer struct {
	http.ResponseWriter
	id      [1]string // the value of its header
	began   time.Time
	status  int // 0: nothing written yet
	bytes   int64
	failure *fault.Error
	cause   error // from which failure was taken
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

// beginAnswer notes that the answer begins with a status, if it has not begun.
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

// Unwrap serves http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
