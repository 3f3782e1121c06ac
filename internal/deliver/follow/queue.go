package follow

import (
	"time"

	"github.com/agentledger/agentledger/id"
)

// queue is the followers to look at, each once, in the order in which they came.
type queue struct {
	waiting map[unit]*waiter
	order   []unit // may hold units that do not wait any more
}

// waiter is a follower that waits.
type waiter struct {
	force bool // also in a pause after a failure
	since id.Instant
}

func (q *queue) addWaiting(u unit, force bool, now id.Instant) {
	if w, known := q.waiting[u]; known {
		w.force = w.force || force
		return
	}
	q.waiting[u] = &waiter{force, now}
	q.order = append(q.order, u)
}

func (q *queue) remove(u unit) { delete(q.waiting, u) }

// takeFirst takes the first follower that fits; nil when none does. Those before it keep their order.
func (q *queue) takeFirst(fits func(unit) bool) (unit, *waiter) {
	kept := 0
	for i, u := range q.order {
		w, waits := q.waiting[u]
		if !waits {
			continue
		}
		if fits(u) {
			delete(q.waiting, u)
			copy(q.order[i+1-kept:], q.order[:kept])
			q.order = q.order[i+1-kept:]
			return u, w
		}
		q.order[kept] = u
		kept++
	}
	q.order = q.order[:kept]
	return unit{}, nil
}

// Waiting returns for how long the first follower has been waiting for a place, and how many wait.
func (f *Follower) Waiting() (longest time.Duration, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.currentTime()
	for _, u := range f.queue.order {
		if w, waits := f.queue.waiting[u]; waits {
			return time.Duration(now-w.since) * time.Millisecond, len(f.queue.waiting)
		}
	}
	return 0, 0
}
