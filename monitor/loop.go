package monitor

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
)

// Loop repeats checks.
type Loop struct {
	Interval time.Duration // between two successful checks; required
	Backoff  time.Duration // after the first failed check, doubled after each further one up to Interval; default 1 s

	// pause waits, or returns the context's error. Tests replace it.
	pause func(context.Context, time.Duration) error
}

// Run calls check until ctx ends, and then returns nil, or until check returns a *Finding, which
// Run returns. check must report other errors itself; the next check follows after a back-off.
func (l Loop) Run(ctx context.Context, check func(context.Context) error) error {
	if l.Backoff <= 0 {
		l.Backoff = time.Second
	}
	if l.pause == nil {
		l.pause = syncs.Sleep
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

// pauseAfter returns the time until the next check after a number of consecutive failed checks. It
// is random, between half of the back-off and the whole back-off, so that the monitors of one log
// spread out.
func (l Loop) pauseAfter(failed int) time.Duration {
	d := l.Interval
	if shift := failed - 1; failed > 0 && shift < 32 && l.Backoff <= l.Interval>>shift {
		d = l.Backoff << shift
	}
	return d/2 + rand.N(d/2+1)
}
