package schedule_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
)

// A worker attempts due entries as far as it has slots, and the others as soon as slots are free. An entry whose attempt
// failed is retried after a second.
func TestWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newIndex()
		note(t, x, schedule.Entry{At: 1, Tenant: red, Name: "a/lane"}, schedule.Entry{At: 2, Tenant: red, Name: "b"},
			schedule.Entry{At: 3, Tenant: blue, Name: "c"}, schedule.Entry{At: 4, Tenant: blue, Name: "d"})
		ctx, cancel := context.WithCancel(t.Context())
		failed, began := errors.New("failed"), time.Now()
		var mu sync.Mutex
		var attempts []string
		inFlight, most, reports := 0, 0, 0
		w := schedule.Worker{
			Index: x, Now: func() id.Instant { return id.Instant(10 + time.Since(began).Milliseconds()) },
			Slots: schedule.NewSlots(func(inFlight schedule.Jobs, j schedule.Job, _ string) schedule.Outcome {
				if len(inFlight) >= 2 {
					return schedule.AllFull()
				}
				return schedule.Keep()
			}),
			Attempt: func(_ context.Context, e schedule.Entry) (schedule.Outcome, error) {
				mu.Lock()
				attempts = append(attempts, e.Object())
				first := len(attempts) == 1
				inFlight++
				most = max(most, inFlight)
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				defer mu.Unlock()
				inFlight--
				if first {
					return schedule.Keep(), failed
				}
				return schedule.Done(), nil
			},
			Report: func(err error) {
				if !errors.Is(err, failed) {
					t.Errorf("got %v", err)
				}
				reports++
			},
		}
		ended := make(chan struct{})
		go func() { w.Run(ctx); close(ended) }()
		time.Sleep(250 * time.Millisecond) // two times two attempts, without another tick
		mu.Lock()
		if len(attempts) != 4 || most != 2 || reports != 1 {
			t.Errorf("got attempts %v, at most %d in flight, %d reports", attempts, most, reports)
		}
		mu.Unlock()
		time.Sleep(2 * time.Second)
		cancel()
		<-ended
		if len(attempts) != 5 || attempts[4] != attempts[0] {
			t.Errorf("got attempts %v, want the first one once more", attempts)
		}
		if n, err := x.CountDue(t.Context(), w.Now(), 10); err != nil || n != 0 {
			t.Errorf("%d entries are left, %v", n, err)
		}
	})
}

// Start refuses a job in flight, and Run returns only after all work has ended.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := schedule.NewSlots(func(schedule.Jobs, schedule.Job, string) schedule.Outcome { return schedule.Keep() })
		job, release := schedule.Job{Tenant: red, Object: "a"}, make(chan struct{})
		if _, started := s.Start(job, "", func() { <-release }); !started || !s.InFlight(job) {
			t.Error("a job with a free slot did not start")
		}
		if outcome, started := s.Start(job, "", nil); started || outcome != schedule.Keep() {
			t.Errorf("a job in flight was started again, or got %v", outcome)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		sweeps := 0
		time.AfterFunc(100*time.Millisecond, func() { close(release) })
		s.Go(func() { time.Sleep(time.Hour) })
		began := time.Now()
		s.Run(ctx, func(context.Context) error { sweeps++; return nil }, nil)
		if sweeps != 2 { // at once, and after the job that was asked for twice
			t.Errorf("got %d sweeps, want 2", sweeps)
		}
		if s.InFlight(job) || time.Since(began) != time.Hour {
			t.Errorf("Run returned after %v", time.Since(began))
		}
	})
}
