package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
)

// Retry configures retries. The pause before a retry is random, between half of the back-off and
// the whole back-off. A longer Retry-After of the service takes precedence. Zero fields have
// defaults.
type Retry struct {
	Attempts int           // maximum number of tries; 0 means 8, 1 disables retries
	Base     time.Duration // back-off after the first try, doubled after each further one; 0 means 200 ms
	Max      time.Duration // maximum back-off; 0 means 10 s. Retry-After may be longer

	// Notify, if set, is called after each failed try that will be retried after wait. It runs in
	// the goroutine of the request.
	Notify func(err error, wait time.Duration)

	// Sleep waits, or returns the context's error. If nil, a timer is used. Tests that must not
	// wait set it.
	Sleep func(ctx context.Context, wait time.Duration) error
}

func (r Retry) withDefaults() Retry {
	if r.Attempts <= 0 {
		r.Attempts = 8
	}
	if r.Base <= 0 {
		r.Base = 200 * time.Millisecond
	}
	if r.Max <= 0 {
		r.Max = 10 * time.Second
	}
	if r.Notify == nil {
		r.Notify = func(error, time.Duration) {}
	}
	if r.Sleep == nil {
		r.Sleep = syncs.Sleep
	}
	return r
}

// waitForNext waits before the next try. err is the failure of the given try, counted from 1, and
// mayRetry is isRetryable or isRetryableEvent. It returns nil if the request should be tried again,
// or the reason why not.
func (r Retry) waitForNext(ctx context.Context, try int, err error, mayRetry func(error) bool) error {
	switch {
	case ctx.Err() != nil || !mayRetry(err):
		return err
	case try >= r.Attempts:
		return fmt.Errorf("gave up after %d attempts: %w", try, err)
	}
	wait := r.pauseAfter(try, err)
	r.Notify(err, wait)
	if stopped := r.Sleep(ctx, wait); stopped != nil {
		return fmt.Errorf("%w while waiting to retry: %w", stopped, err)
	}
	return nil
}

// pauseAfter returns the pause after the given try, counted from 1, which failed with err.
func (r Retry) pauseAfter(try int, err error) time.Duration {
	backoff := r.Max
	if shift := try - 1; shift < 32 && r.Base <= r.Max>>shift {
		backoff = r.Base << shift
	}
	var refused *Error
	errors.As(err, &refused)
	retryAfter := time.Duration(0)
	if refused != nil {
		retryAfter = refused.RetryAfter
	}
	return max(retryAfter, backoff/2+rand.N(backoff/2+1))
}

// isRetryableEvent is isRetryable for a request with events, which may also wait until the service
// takes more: after 429, unless the plan's limit is reached.
func isRetryableEvent(err error) bool {
	answered, ok := errors.AsType[*Error](err)
	return ok && answered.Status == http.StatusTooManyRequests && answered.Code != "plan_limit" || isRetryable(err)
}

// isRetryable reports whether a request that failed with err may be tried again.
func isRetryable(err error) bool {
	var answered *Error
	if errors.As(err, &answered) {
		switch answered.Code {
		case "frozen", "read_only", "held", "importing", "moved":
			return false // requires an operator
		}
		switch answered.Status {
		case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	var certificate *tls.CertificateVerificationError
	var name *net.DNSError
	return !errors.As(err, &certificate) && !(errors.As(err, &name) && name.IsNotFound) && !isNeverRetried(err)
}
