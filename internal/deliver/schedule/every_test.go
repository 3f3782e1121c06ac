package schedule_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/internal/deliver/schedule"
)

// Every sweeps immediately and then every second, skips sweeps while held, and reports errors until its context ends.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		failed, began := errors.New("failed"), time.Now()
		var sweeps, reports []time.Duration
		held := func() error {
			if time.Since(began) == 2*time.Second {
				return errors.New("held")
			}
			return nil
		}
		sweep := func(context.Context) error {
			sweeps = append(sweeps, time.Since(began))
			if time.Since(began) == 4*time.Second {
				cancel()
			}
			return failed
		}
		schedule.Every(ctx, held, sweep, func(err error) {
			if !errors.Is(err, failed) {
				t.Errorf("got %v", err)
			}
			reports = append(reports, time.Since(began))
		})
		wantTimes(t, "sweeps", sweeps, 0, 1, 3, 4)
		wantTimes(t, "reports", reports, 0, 1, 3)
	})
}

func wantTimes(t *testing.T, what string, got []time.Duration, seconds ...time.Duration) {
	t.Helper()
	if len(got) != len(seconds) {
		t.Fatalf("%s: got %v, want %v s", what, got, seconds)
	}
	for i := range got {
		if got[i] != seconds[i]*time.Second {
			t.Errorf("%s: got %v, want %v s", what, got, seconds)
		}
	}
}

// A sweep without held is never skipped.
func TestEveryWithoutHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		n := 0
		schedule.Every(ctx, nil, func(context.Context) error { n++; return nil }, nil)
		if n != 3 {
			t.Errorf("got %d sweeps, want 3", n)
		}
	})
}
