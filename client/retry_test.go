package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
)

func TestWaitGrowsToItsBound(t *testing.T) {
	r := Retry{Base: 100 * time.Millisecond, Max: time.Second}.withDefaults()
	for try, top := range map[int]time.Duration{1: 100, 2: 200, 3: 400, 4: 800, 5: 1000, 6: 1000, 40: 1000, 1 << 20: 1000} {
		for range 50 {
			if got, most := r.pauseAfter(try, errors.New("cut")), top*time.Millisecond; got < most/2 || got > most {
				t.Fatalf("try %d: got %s, want %s to %s", try, got, most/2, most)
			}
		}
	}
	if got := r.pauseAfter(1, &Error{Status: 503, RetryAfter: time.Minute}); got != time.Minute {
		t.Errorf("Retry-After of a minute: got %s", got)
	}
	if got := r.pauseAfter(5, &Error{Status: 503, RetryAfter: time.Millisecond}); got < 500*time.Millisecond {
		t.Errorf("Retry-After shorter than the back-off: got %s", got)
	}
}

func TestRetryAfterIsAtMostAnHour(t *testing.T) {
	for value, want := range map[string]time.Duration{"7": 7 * time.Second, "4000000000": time.Hour, "Thu, 01 Jan 2122 00:00:00 GMT": time.Hour, "soon": 0} {
		answer := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {value}}}
		if got := readErrorAnswer(answer, nil).RetryAfter; got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}

func TestAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"400":                {&Error{Status: 400}, false},
		"401":                {&Error{Status: 401}, false},
		"408":                {&Error{Status: 408}, true},
		"422":                {&Error{Status: 422}, false},
		"429":                {&Error{Status: 429, RetryAfter: time.Second}, false},
		"500":                {&Error{Status: 500}, false},
		"502":                {&Error{Status: 502}, true},
		"503":                {&Error{Status: 503}, true},
		"504":                {&Error{Status: 504}, true},
		"time-out":           {context.DeadlineExceeded, true},
		"connection refused": {&net.OpError{Op: "dial", Err: errors.New("refused")}, true},
		"host not found":     {&net.DNSError{IsNotFound: true}, false},
		"resolver down":      {&net.DNSError{IsTemporary: true}, true},
		"answer not JSON":    {malformedAnswer(errors.New("x")), false},
	} {
		if got := isRetryable(tc.err); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
		if got, want := isRetryableEvent(tc.err), tc.want || name == "429"; got != want {
			t.Errorf("%s: got %v for an event", name, got)
		}
	}
	if err := (&Error{Status: 429, Code: "plan_limit"}); isRetryableEvent(err) {
		t.Error("an event is sent again beyond the plan's limit")
	}
}

func TestPauseEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := syncs.Sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := syncs.Sleep(t.Context(), 0); err != nil {
		t.Error(err)
	}
}
