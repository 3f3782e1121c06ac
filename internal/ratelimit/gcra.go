package ratelimit

import (
	"time"

	"github.com/agentledger/agentledger/id"
)

// GCRA is the state of the generic cell rate algorithm (ITU-T I.371) for one subject: it allows a burst of attempts at
// once, and one more after each interval. The zero value is a subject without attempts. It can be stored in a record,
// so that a limit survives restarts and lasts for days.
type GCRA struct {
	// Arrival is the theoretical arrival time: past attempts count until then.
	Arrival id.Instant `json:"paid"`
}

// Wait returns how long the next attempt has to wait, or 0 if it is allowed at now. every must be at least a
// millisecond.
func (g GCRA) Wait(now id.Instant, burst int, every time.Duration) time.Duration {
	early := g.Arrival - now - id.Instant(burst-1)*toMilliseconds(every)
	return time.Duration(max(0, early)) * time.Millisecond
}

// Add counts one attempt at now, whether or not Wait allows it.
func (g *GCRA) Add(now id.Instant, every time.Duration) {
	g.Arrival = max(g.Arrival, now) + toMilliseconds(every)
}

// Remove undoes one Add.
func (g *GCRA) Remove(now id.Instant, every time.Duration) {
	g.Arrival = max(g.Arrival, now) - toMilliseconds(every)
}

// Take counts one attempt at now and returns 0 if it is allowed. Otherwise it counts nothing and returns how long to
// wait.
func (g *GCRA) Take(now id.Instant, burst int, every time.Duration) time.Duration {
	wait := g.Wait(now, burst, every)
	if wait == 0 {
		g.Add(now, every)
	}
	return wait
}

func toMilliseconds(d time.Duration) id.Instant { return id.Instant(d / time.Millisecond) }
