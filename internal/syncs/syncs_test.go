package syncs_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/internal/syncs"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := syncs.Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := syncs.Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

func TestAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := errors.New("one"), errors.New("two")
		began := time.Now()
		err := syncs.RunAll(func() error { time.Sleep(2 * time.Second); return one },
			func() error { time.Sleep(time.Second); return two }, func() error { return nil })
		if !errors.Is(err, one) || !errors.Is(err, two) || err.Error() != "one\ntwo" {
			t.Errorf("got %v, want both errors in their order", err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v, want as long as the longest", took)
		}
		if err := syncs.RunAll(); err != nil {
			t.Errorf("got %v of no work", err)
		}
	})
}

func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		if err := syncs.Within(t.Context(), func() error { time.Sleep(time.Second); return failed }); !errors.Is(err, failed) {
			t.Errorf("got %v, want the error of the work", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		done, began := false, time.Now()
		err := syncs.Within(ctx, func() error { time.Sleep(time.Minute); done = true; return nil })
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		time.Sleep(time.Minute)
		if synctest.Wait(); !done {
			t.Error("the work did not go on")
		}
	})
}
