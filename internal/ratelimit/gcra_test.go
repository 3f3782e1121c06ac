package ratelimit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/ratelimit"
)

func TestGCRA(t *testing.T) {
	var p ratelimit.GCRA
	const now, every = id.Instant(1_000_000), 10 * time.Millisecond
	for i := range 3 {
		if wait := p.Take(now, 3, every); wait != 0 {
			t.Errorf("%d: got %v", i, wait)
		}
	}
	for i, c := range []struct {
		at   id.Instant
		want time.Duration
	}{{now, every}, {now, every}, {now + 4, 6 * time.Millisecond}, {now + 10, 0}, {now + 10, every}, {now + 1000, 0}, {now + 1000, 0}, {now + 1000, 0}, {now + 1000, every}} {
		if got := p.Take(c.at, 3, every); got != c.want {
			t.Errorf("%d: got %v, want %v", i, got, c.want)
		}
	}
}

// The limit is compared with a count of all attempts: no period of time contains more than the burst and one for each
// interval.
func TestGCRAHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var p ratelimit.GCRA
	var done []id.Instant
	const atOnce, every = 5, 10
	for now := id.Instant(1_000); now < 20_000; now += id.Instant(random.IntN(12)) {
		wait := p.Take(now, atOnce, every*time.Millisecond)
		if wait == 0 {
			done = append(done, now)
		} else if p.Take(now+id.Instant(wait/time.Millisecond), atOnce, every*time.Millisecond) != 0 {
			t.Fatalf("%d: the returned time is too early", now)
		} else {
			now += id.Instant(wait / time.Millisecond)
			done = append(done, now)
		}
	}
	for i := range done {
		for j := i; j < len(done); j++ {
			if n, most := j-i+1, atOnce+int(done[j]-done[i])/every; n > most {
				t.Fatalf("from %d to %d: %d, at most %d", done[i], done[j], n, most)
			}
		}
	}
	if len(done) < 1500 {
		t.Errorf("only %d were done", len(done))
	}
}
