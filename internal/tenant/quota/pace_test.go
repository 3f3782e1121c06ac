package quota_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/storage"
)

// state counts one statement as an owner's change does.
func state(t testing.TB, q *quota.Quota, tenant id.Tenant) error {
	t.Helper()
	for {
		paced, err := q.CountStatement(t.Context(), tenant)
		if err != nil {
			return err
		}
		if err := q.Records.Write(t.Context(), tenant, paced); !errors.Is(err, storage.ErrStale) {
			return err
		}
	}
}

// A minute's statements may be made at once, also concurrently, then one per interval. This holds over restarts and
// does not affect others.
func TestPace(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		q := &quota.Quota{Records: open(t), Clock: func() time.Time { return now }, Plan: plans{red: {StatementsPerMinute: 6}, blue: {StatementsPerMinute: 6}}.Limits}
		var made atomic.Int64
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() {
				if err := state(t, q, red); err == nil {
					made.Add(1)
				} else if !fault.Is(err, fault.RateLimited) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if made.Load() != 6 {
			t.Errorf("got %d statements at once, want 6", made.Load())
		}
		again := &quota.Quota{Records: q.Records, Clock: q.Clock, Plan: q.Plan} // as after a restart
		err := state(t, again, red)
		refused(t, "the seventh", err, fault.RateLimited, "rate_limited", "Too many changes: at most 6 in a minute")
		if wait := fault.Of(err).RetryAfter; wait != 10*time.Second {
			t.Errorf("got Retry-After %v, want 10s", wait)
		}
		if n, err := again.CountedStatements(t.Context(), red); n != 6 || err != nil {
			t.Errorf("got %d that count, %v; want 6", n, err)
		}
		if err := state(t, again, blue); err != nil {
			t.Errorf("the other organization: %v", err)
		}
		now = now.Add(10 * time.Second)
		if err := state(t, again, red); err != nil {
			t.Errorf("after an interval: %v", err)
		}
		if err := state(t, again, red); !fault.Is(err, fault.RateLimited) {
			t.Errorf("at once again: got %v", err)
		}
	})
}

// A clock that was ahead and is corrected blocks nobody.
func TestPaceAfterACorrectedClock(t *testing.T) {
	now := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	q := &quota.Quota{Records: enginetest.Pebble(t), Clock: func() time.Time { return now }, Plan: plans{red: {StatementsPerMinute: 60}}.Limits}
	if err := state(t, q, red); err != nil {
		t.Fatal(err)
	}
	now = now.AddDate(-10, 0, 0)
	if err := state(t, q, red); err != nil {
		t.Errorf("got %v", err)
	}
	if n, err := q.CountedStatements(t.Context(), red); n != 1 || err != nil {
		t.Errorf("got %d that count, %v; want 1", n, err)
	}
}

func TestNoPace(t *testing.T) {
	q := &quota.Quota{Records: enginetest.Pebble(t), Clock: time.Now, Plan: plans{}.Limits}
	for range 100 {
		if changes, err := q.CountStatement(t.Context(), red); err != nil || changes != nil {
			t.Fatalf("got %v, %v", changes, err)
		}
	}
}
