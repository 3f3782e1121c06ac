package witness

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The limit is halved once for calls that were in flight together, down to one, and grows with answers.
func TestLaneAdapts(t *testing.T) {
	l := &lane{limit: 8, most: 8}
	enter := func(n int) (calls []call) {
		t.Helper()
		for range n {
			c, ok := l.enter(t.Context())
			if !ok {
				t.Fatal("not admitted")
			}
			calls = append(calls, c)
		}
		return calls
	}
	for _, want := range []int{4, 2, 1, 1} {
		calls := enter(l.limit)
		for i, c := range calls {
			if alone := l.leave(c, busy); alone != (len(calls) == 1) {
				t.Errorf("call %d of %d: alone %v", i, len(calls), alone)
			}
		}
		if l.limit != want {
			t.Errorf("after %d busy answers: limit %d, want %d", len(calls), l.limit, want)
		}
	}
	for _, r := range []result{unwell, gone} { // these are not answers
		for range 2 * growAfter {
			l.leave(enter(1)[0], r)
		}
	}
	if l.limit != 1 {
		t.Errorf("after failures: limit %d", l.limit)
	}
	for want := 2; want <= 8; want++ {
		for range growAfter {
			l.leave(enter(1)[0], cosigned)
		}
		if l.limit != want {
			t.Errorf("after answers: limit %d, want %d", l.limit, want)
		}
	}
	for range 10 * growAfter {
		l.leave(enter(1)[0], refused)
	}
	if l.limit != 8 || l.inFlight != 0 {
		t.Errorf("at last: limit %d, %d in flight", l.limit, l.inFlight)
	}
}

// Callers wait in order while the limit is reached, and one whose context ends leaves no gap.
func TestLaneWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lane{limit: 1, most: 8}
		first, _ := l.enter(t.Context())
		var order []int
		for i := range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				c, ok := l.enter(ctx)
				if ok != (i != 1) {
					t.Errorf("caller %d: admitted %v", i, ok)
				}
				if ok {
					order = append(order, i)
					time.Sleep(time.Second)
					l.leave(c, cosigned)
				}
			}()
			synctest.Wait()
			if i == 1 {
				cancel()
			}
		}
		if len(order) > 0 {
			t.Errorf("%v did not wait", order)
		}
		if alone := l.leave(first, cosigned); !alone {
			t.Error("the first call was alone, however many waited")
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if len(order) != 2 || order[0] != 0 || order[1] != 2 || l.inFlight != 0 || len(l.waiting) != 0 {
			t.Errorf("got %v, %d in flight, %d waiting", order, l.inFlight, len(l.waiting))
		}
	})
}
