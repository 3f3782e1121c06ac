package ratelimit

import (
	"time"

	"github.com/agentledger/agentledger/id"
)

// GCRA is the state of the generic cell rate algorithm (ITU-T I.371) for one subject: a
// burst of attempts is allowed at once, and one more after each interval. The zero value
// is a subject without attempts. It can be kept in a record, so that a bound holds over
// days and restarts.
type GCRA struct {
	// Arrival is the theoretical arrival time: until then the attempts of the past count.
	Arrival id.Instant `json:"paid"`
}

// Wait returns how long the next attempt has to wait at now, 0 for not at all. every is
// at least a millisecond.
func (g GCRA) Wait(now id.Instant, burst int, every time.Duration) time.Duration {
	early := g.Arrival - now - id.Instant(burst-1)*toMilliseconds(every)
	return time.Duration(max(0, early)) * time.Millisecond
}

// Add counts one attempt at now. It does not ask Wait.
func (g *GCRA) Add(now id.Instant, every time.Duration) {
	g.Arrival = max(g.Arrival, now) + toMilliseconds(every)
}

// Remove takes back one attempt that Add counted.
func (g *GCRA) Remove(now id.Instant, every time.Duration) {
	g.Arrival = max(g.Arrival, now) - toMilliseconds(every)
}

// Take counts one attempt at now and returns 0. If there have been too many, it counts
// nothing and returns how long the attempt has to wait.
func (g *GCRA) Take(now id.Instant, burst int, every time.Duration) time.Duration {
	wait := g.Wait(now, burst, every)
	if wait == 0 {
		g.Add(now, every)
	}
	return wait
}

func toMilliseconds(d time.Duration) id.Instant { return id.Instant(d / time.Millisecond) }
