package monitor

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/agentledger/agentledger/internal/wait"
)

// Loop checks again and again.
type Loop struct {
	Interval time.Duration // between two checks that could tell something; required
	Backoff  time.Duration // after the first check that could not, doubled by each further one up to Interval; default 1 s

	// pause waits, or returns the context's error. Tests replace it.
	pause func(context.Context, time.Duration) error
}

// Run calls check until it returns a *Finding, which Run returns, or ctx ends,
// which is no error. check says itself what there is to say of other errors.
func (l Loop) Run(ctx context.Context, check func(context.Context) error) error {
	if l.Backoff <= 0 {
		l.Backoff = time.Second
	}
	if l.pause == nil {
		l.pause = wait.For
	}
	for failed := 0; ; {
		err := check(ctx)
		var f *Finding
		switch {
		case errors.As(err, &f):
			return err
		case err != nil:
			failed++
		default:
			failed = 0
		}
		if l.pause(ctx, l.pauseAfter(failed)) != nil {
			return nil
		}
	}
}

// pauseAfter returns the time to the next check, after so many in a row that could not
// tell: from half of the back-off to all of it, so that the monitors of one log
// don't come together.
func (l Loop) pauseAfter(failed int) time.Duration {
	d := l.Interval
	if shift := failed - 1; failed > 0 && shift < 32 && l.Backoff <= l.Interval>>shift {
		d = l.Backoff << shift
	}
	return d/2 + rand.N(d/2+1)
}
