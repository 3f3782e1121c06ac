package client

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

const (
	// maxFlights is the maximum number of requests of a gatherer that are in flight at a time. While
	// the service stores the events of one, the events of the next one arrive.
	maxFlights = 2
	// maxHold is how long a request in flight may keep other events waiting. After that it is hanging,
	// and only its own events wait for it.
	maxHold = time.Second
)

// gatherer sends the events of concurrent calls together, because a request costs more than an
// event. An event is sent at once if no request is in flight. Otherwise it waits until one ends, and
// is sent together with all others that are waiting then; no event waits longer in order to meet
// others. A second request starts beside another one as soon as it would be as large, because many
// small ones cost more.
//
// Events of one trace are stored in the order of the calls: while one is in flight, the later ones
// wait, unless its request hangs.
type gatherer struct {
	// try sends events in one request, once, and returns the outcome of each. An error is the outcome
	// of all.
	try func(ctx context.Context, events []*event.Envelope) ([]Outcome, error)

	mu      sync.Mutex
	waiting []*gathered       // in the order of the calls
	flights []*flight         // requests that others wait for
	traces  map[id.Trace]bool // traces that have an event in these
}

// gathered is an event of one call, which waits for its outcome.
type gathered struct {
	ctx     context.Context
	event   *event.Envelope
	alone   bool    // sent without others, because a request with others failed
	flight  *flight // nil while the event waits
	outcome Outcome
	done    chan struct{} // closed when outcome is set
}

// flight is a request that is in flight.
type flight struct {
	events  []*gathered
	callers int                // calls that still wait for it
	cancel  context.CancelFunc // ends it when there are none
	hold    *time.Timer        // ends the wait of others
}

// send sends an event with others, once. If ctx ends first, the event may have been sent.
func (g *gatherer) send(ctx context.Context, e *event.Envelope) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	x := &gathered{ctx: ctx, event: e, done: make(chan struct{})}
	g.mu.Lock()
	g.waiting = append(g.waiting, x)
	g.start()
	g.mu.Unlock()
	select {
	case <-x.done:
		return x.outcome.Result, x.outcome.Err
	case <-ctx.Done():
		g.leave(x)
		return Result{}, ctx.Err()
	}
}

// leave gives up waiting for an event.
func (g *gatherer) leave(x *gathered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, x); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return
	}
	if x.flight.callers--; x.flight.callers == 0 {
		x.flight.cancel()
	}
}

// start starts the requests that may start now. A request has the values of the context of its first
// call, but does not end with it. g.mu is held.
func (g *gatherer) start() {
	for len(g.flights) < maxFlights {
		least := 1
		for _, f := range g.flights {
			least = max(least, len(f.events))
		}
		if len(g.waiting) < least {
			return
		}
		events, rest := g.next()
		if len(events) < least {
			return
		}
		flying, cancel := context.WithCancel(context.WithoutCancel(events[0].ctx))
		f := &flight{events: events, callers: len(events), cancel: cancel}
		f.hold = time.AfterFunc(maxHold, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.release(f)
			g.start()
		})
		for _, x := range events {
			x.flight = f
			g.traces[x.event.TraceID] = true
		}
		g.waiting, g.flights = rest, append(g.flights, f)
		go g.fly(flying, f)
	}
}

// next returns the events of the next request, and the others.
func (g *gatherer) next() (events, rest []*gathered) {
	held := make(map[id.Trace]bool) // traces of events that stay
	size := 0
	for i, x := range g.waiting {
		trace := x.event.TraceID
		length := len(x.event.Canonical) + 1
		if len(events) == maxBatchLines || len(events) > 0 && (size+length > maxBatchBytes || x.alone || events[0].alone) {
			return events, append(rest, g.waiting[i:]...)
		}
		if g.traces[trace] || held[trace] {
			held[trace] = true
			rest = append(rest, x)
			continue
		}
		events, size = append(events, x), size+length
	}
	return events, rest
}

// fly sends the events of a request and sets their outcomes.
func (g *gatherer) fly(ctx context.Context, f *flight) {
	defer f.cancel()
	events := make([]*event.Envelope, len(f.events))
	for i, x := range f.events {
		events[i] = x.event
	}
	outcomes, err := g.try(ctx, events)

	f.hold.Stop()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(events) > 1 && mayConcernOne(err) {
		for _, x := range f.events {
			x.alone, x.flight = true, nil
		}
		g.waiting = slices.Concat(f.events, g.waiting)
	} else {
		for i, x := range f.events {
			if err != nil {
				x.outcome.Err = err
			} else {
				x.outcome = outcomes[i]
			}
			close(x.done)
		}
		g.gather(len(events))
	}
	g.release(f)
	g.start()
}

// gather lets the callers that have just got their answers send their next events, so that these share the next request. It
// does not wait for a time: it ends when as many events wait, or when other goroutines ran and sent none. g.mu is held.
func (g *gatherer) gather(released int) {
	for seen := -1; seen < len(g.waiting) && len(g.waiting) < released; {
		seen = len(g.waiting)
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
	}
}

// release ends the wait of others for a request, which has ended or hangs. g.mu is held.
func (g *gatherer) release(f *flight) {
	i := slices.Index(g.flights, f)
	if i < 0 {
		return
	}
	g.flights = slices.Delete(g.flights, i, i+1)
	for _, x := range f.events {
		delete(g.traces, x.event.TraceID)
	}
}

// mayConcernOne reports whether the answer to a request with several events may be about one of them:
// it is too large, or a proxy does not let it through. Any other answer that is provably the service's
// is about the sender.
func mayConcernOne(err error) bool {
	if errors.Is(err, ErrAnswer) {
		return true
	}
	answer, ok := errors.AsType[*Error](err)
	if !ok || answer.Proved || answer.Status == http.StatusUnauthorized || answer.Status == http.StatusTooManyRequests || isRetryable(err) {
		return false
	}
	return answer.Status/100 == 4
}

// isRefusedTogether reports whether events that were refused with err can be accepted in requests of
// their own. A proxy may limit bodies to less than the service does.
func isRefusedTogether(err error) bool {
	answer, ok := errors.AsType[*Error](err)
	return ok && answer.Status == http.StatusRequestEntityTooLarge
}
