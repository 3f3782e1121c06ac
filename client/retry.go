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

	"github.com/agentledger/agentledger/internal/wait"
)

// Retry says when a request is tried again: after a random pause between half of
// the back-off and all of it, or after what the service asks for by Retry-After,
// whichever is longer. Zero fields have the defaults named there.
type Retry struct {
	Attempts int           // tries in all, 0 means 8; 1 never tries again
	Base     time.Duration // back-off after the first try, doubled by each further one; 0 means 200 ms
	Max      time.Duration // longest back-off; 0 means 10 s. Retry-After may be longer

	// Notify, when set, is told of each failed try that will be followed by
	// another after wait. It is called in the goroutine of the request.
	Notify func(err error, wait time.Duration)

	// Sleep waits, or returns the context's error; nil means by a timer. Tests that must
	// not wait set it.
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
		r.Sleep = wait.For
	}
	return r
}

// waitForNext waits before the try after the try'th, counted from 1, which failed with
// err. It returns why there is none.
func (r Retry) waitForNext(ctx context.Context, try int, err error) error {
	switch {
	case ctx.Err() != nil || !isRetryable(err):
		return err
	case try >= r.Attempts:
		return fmt.Errorf("given up after %d tries: %w", try, err)
	}
	wait := r.pauseAfter(try, err)
	r.Notify(err, wait)
	if stopped := r.Sleep(ctx, wait); stopped != nil {
		return fmt.Errorf("%w while waiting to try again: %w", stopped, err)
	}
	return nil
}

// pauseAfter returns the pause after the try'th try, counted from 1, which failed with err.
func (r Retry) pauseAfter(try int, err error) time.Duration {
	backoff := r.Max
	if shift := try - 1; shift < 32 && r.Base <= r.Max>>shift {
		backoff = r.Base << shift
	}
	var refused *Error
	errors.As(err, &refused)
	asked := time.Duration(0)
	if refused != nil {
		asked = refused.RetryAfter
	}
	return max(asked, backoff/2+rand.N(backoff/2+1))
}

// isRetryable reports whether a request that failed with err may have another try.
func isRetryable(err error) bool {
	var answered *Error
	if errors.As(err, &answered) {
		switch answered.Code {
		case "frozen", "read_only", "importing", "moved":
			return false // until an operator has done something
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
