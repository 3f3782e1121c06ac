package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/fakeservice"
)

// held is a gatherer whose requests stay in flight until the test answers them.
type held struct {
	*gatherer
	mu       sync.Mutex
	requests []*heldRequest
}

type heldRequest struct {
	events []string
	ctx    context.Context
	answer chan error // of the whole request
}

func newHeld() *held {
	h := &held{}
	h.gatherer = &gatherer{traces: make(map[id.Trace]bool), try: func(ctx context.Context, events []*event.Envelope) ([]Outcome, error) {
		r := &heldRequest{ctx: ctx, answer: make(chan error)}
		outcomes := make([]Outcome, len(events))
		for i, e := range events {
			r.events = append(r.events, string(e.EventID))
			outcomes[i].Result = Result{EventID: e.EventID, Status: Created}
		}
		h.mu.Lock()
		h.requests = append(h.requests, r)
		h.mu.Unlock()
		select {
		case err := <-r.answer:
			return outcomes, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	return h
}

// call starts to send an event in a goroutine of its own. The result is "ok" or the error.
func (h *held) call(ctx context.Context, name, trace string, size int) (result chan string) {
	result = make(chan string, 1)
	go func() {
		r, err := h.send(ctx, &event.Envelope{EventID: id.Event(name), TraceID: id.Trace(trace), Canonical: make([]byte, size)})
		switch {
		case err != nil:
			result <- err.Error()
		case r.EventID != id.Event(name):
			result <- "outcome of " + string(r.EventID)
		default:
			result <- "ok"
		}
	}()
	synctest.Wait()
	return result
}

// check compares the events of all requests so far, and forgets them.
func (h *held) check(t *testing.T, want ...string) (requests []*heldRequest) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	var got []string
	for _, r := range h.requests {
		got = append(got, strings.Join(r.events, " "))
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got requests %q, want %q", got, want)
	}
	requests, h.requests = h.requests, nil
	return requests
}

func (r *heldRequest) end(err error) {
	r.answer <- err
	synctest.Wait()
}

func checkResults(t *testing.T, want string, results ...chan string) {
	t.Helper()
	for i, r := range results {
		if got := <-r; got != want {
			t.Errorf("call %d: got %q, want %q", i, got, want)
		}
	}
}

// What waits while requests are in flight goes in the next one. A second request is as large as the other one.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		ctx := t.Context()
		var all []chan string
		for i := range 5 {
			all = append(all, h.call(ctx, fmt.Sprint(i), fmt.Sprint("trace", i), 100))
		}
		first := h.check(t, "0", "1")
		first[0].end(nil)
		second := h.check(t, "2 3 4")
		first[1].end(nil)
		all = append(all, h.call(ctx, "5", "a", 100), h.call(ctx, "6", "b", 100))
		h.check(t)
		all = append(all, h.call(ctx, "7", "c", 100), h.call(ctx, "8", "d", 100))
		third := h.check(t, "5 6 7")
		second[0].end(nil)
		third[0].end(nil)
		fourth := h.check(t, "8")
		fourth[0].end(nil)
		checkResults(t, "ok", all...)
	})
}

// While an event of a trace is in flight, later ones of that trace wait, and those of others do not.
func TestGatherKeepsOrderOfTraces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		a1 := h.call(t.Context(), "a1", "a", 100)
		a2 := h.call(t.Context(), "a2", "a", 100)
		a3 := h.call(t.Context(), "a3", "a", 100)
		b1 := h.call(t.Context(), "b1", "b", 100)
		b2 := h.call(t.Context(), "b2", "b", 100)
		flying := h.check(t, "a1", "b1")
		flying[1].end(nil)
		more := h.check(t, "b2")
		flying[0].end(nil)
		last := h.check(t, "a2 a3")
		last[0].end(nil)
		more[0].end(nil)
		checkResults(t, "ok", a1, a2, a3, b1, b2)
	})
}

// A request that hangs holds back its own events alone.
func TestGatherHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		a1 := h.call(t.Context(), "a1", "a", 100)
		time.Sleep(maxHold / 2)
		b1 := h.call(t.Context(), "b1", "b", 100)
		hanging := h.check(t, "a1", "b1")
		a2, c1 := h.call(t.Context(), "a2", "a", 100), h.call(t.Context(), "c1", "c", 100)
		time.Sleep(maxHold/2 - time.Millisecond)
		h.check(t)
		time.Sleep(time.Millisecond)
		next := h.check(t, "a2 c1")
		time.Sleep(maxHold) // b1 hangs too
		next[0].end(nil)
		checkResults(t, "ok", a2, c1)
		a3 := h.call(t.Context(), "a3", "a", 100)
		h.check(t, "a3")[0].end(nil)
		checkResults(t, "ok", a3)
		hanging[0].end(nil)
		hanging[1].end(errors.New("cut"))
		checkResults(t, "ok", a1)
		checkResults(t, "cut", b1)
		if len(h.waiting)+len(h.flights)+len(h.traces) != 0 {
			t.Errorf("left: %d waiting, %d in flight, %d traces", len(h.waiting), len(h.flights), len(h.traces))
		}
	})
}

func TestGatherLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		all := []chan string{h.call(t.Context(), "x", "x", 100), h.call(t.Context(), "y", "y", 100)}
		flying := h.check(t, "x", "y")
		for i := range maxBatchLines + 1 {
			all = append(all, h.call(t.Context(), "small", fmt.Sprint(i), 100))
		}
		for i := range 2 {
			all = append(all, h.call(t.Context(), fmt.Sprint("large", i), fmt.Sprint("large", i), maxBatchBytes/2))
		}
		all = append(all, h.call(t.Context(), "huge", "huge", maxBatchBytes*2))
		for len(flying) > 0 {
			flying[0].end(nil)
			h.mu.Lock()
			flying, h.requests = append(flying[1:], h.requests...), nil
			h.mu.Unlock()
			for _, r := range flying {
				if n := len(r.events); n > maxBatchLines || slices.Contains(r.events, "huge") && n > 1 ||
					slices.Contains(r.events, "large0") && slices.Contains(r.events, "large1") {
					t.Errorf("%d events in a request, %q to %q", n, r.events[0], r.events[n-1])
				}
			}
		}
		checkResults(t, "ok", all...)
	})
}

// A call that ends early takes nothing from the others. A request without callers ends.
func TestGatherLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld()
		waits, leave := context.WithCancel(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		one := h.call(ctx, "1", "1", 100)
		two := h.call(t.Context(), "2", "2", 100)
		gone := h.call(waits, "3", "3", 100)
		four := h.call(t.Context(), "4", "4", 100)
		flying := h.check(t, "1", "2")
		leave()
		synctest.Wait()
		cancel()
		synctest.Wait()
		checkResults(t, context.Canceled.Error(), one, gone)
		if flying[0].ctx.Err() == nil || flying[1].ctx.Err() != nil {
			t.Errorf("contexts: %v and %v", flying[0].ctx.Err(), flying[1].ctx.Err())
		}
		next := h.check(t, "4")
		next[0].end(nil)
		flying[1].end(nil)
		checkResults(t, "ok", two, four)

		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		before := []chan string{h.call(t.Context(), "5", "5", 100), h.call(t.Context(), "6", "6", 100)}
		gone = h.call(ctx, "7", "7", 100)
		stays := h.call(t.Context(), "8", "8", 100)
		flying = h.check(t, "5", "6")
		flying[0].end(nil)
		shared := h.check(t, "7 8")
		cancel()
		checkResults(t, context.Canceled.Error(), gone, h.call(ctx, "9", "9", 100))
		if shared[0].ctx.Err() != nil {
			t.Error("a request ended with the first of its callers")
		}
		shared[0].end(nil)
		flying[1].end(nil)
		checkResults(t, "ok", append(before, stays)...)
		h.check(t)
		if len(h.waiting)+len(h.flights)+len(h.traces) != 0 {
			t.Errorf("left: %d waiting, %d in flight, %d traces", len(h.waiting), len(h.flights), len(h.traces))
		}
	})
}

// An error of a request is that of each of its events, unless it may concern one of them: then each event is sent alone.
func TestGatherErrors(t *testing.T) {
	for _, c := range []struct {
		err   error
		alone bool
	}{
		{&Error{Status: http.StatusRequestEntityTooLarge}, true},
		{&Error{Status: http.StatusForbidden}, true},
		{malformedAnswer(errors.New("a page")), true},
		{&Error{Status: http.StatusForbidden, Proved: true}, false},
		{&Error{Status: http.StatusUnauthorized}, false},
		{&Error{Status: http.StatusTooManyRequests}, false},
		{&Error{Status: http.StatusServiceUnavailable}, false},
		{&Error{Status: http.StatusFound}, false},
		{errors.New("reset"), false},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHeld()
			one, two := h.call(t.Context(), "1", "1", 100), h.call(t.Context(), "2", "2", 100)
			three, four := h.call(t.Context(), "3", "3", 100), h.call(t.Context(), "4", "4", 100)
			flying := h.check(t, "1", "2")
			flying[0].end(c.err)
			checkResults(t, c.err.Error(), one)
			h.check(t, "3 4")[0].end(c.err)
			if c.alone {
				h.check(t, "3")[0].end(errors.New("cut"))
				checkResults(t, "cut", three)
				h.check(t, "4")[0].end(nil)
				checkResults(t, "ok", four)
			} else {
				h.check(t)
				checkResults(t, c.err.Error(), three, four)
			}
			flying[1].end(nil)
			checkResults(t, "ok", two)
		})
	}
}

// Many callers in any order, answered in any order: each event is stored once, and those of a trace in the order in
// which its caller sent them.
func TestSendTogether(t *testing.T) {
	s := fakeservice.Start(t, 2)
	o := s.Organization(1)
	c, _ := dial(t, s, o)
	const callers, each = 64, 8
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			for k := range each {
				e := envelope(t, o, Event{EventID: id.Event(fmt.Sprintf("evt_%d_%d", i, k))})
				r, err := c.Send(t.Context(), e)
				if err != nil || r.Status != Created || r.EventID != id.Event(fmt.Sprintf("evt_%d_%d", i, k)) {
					t.Errorf("got %+v, %v", r, err)
				}
			}
		})
	}
	group.Wait()
	requests := len(s.Requests())
	if o.Size() != callers*each || s.Organization(0).Size() != 0 || requests >= callers*each {
		t.Errorf("sizes %d and %d after %d requests", o.Size(), s.Organization(0).Size(), requests)
	}
}
