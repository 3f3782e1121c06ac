package follow

import (
	"time"

	"github.com/agentledger/agentledger/id"
)

// queue contains the followers that wait for a look, each once, in the order in which they came.
type queue struct {
	waiting map[unit]*waiter
	order   []unit // may contain units that no longer wait
}

// waiter is a follower that waits.
type waiter struct {
	force bool // even in a pause after a failure
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

// takeEach calls take for the followers in their order, until it returns stop, and removes those that it takes. The others
// keep their order.
func (q *queue) takeEach(take func(unit, *waiter) (taken, stop bool)) {
	kept, seen := 0, 0
	for stop := false; seen < len(q.order) && !stop; seen++ {
		u := q.order[seen]
		w, waits := q.waiting[u]
		if !waits {
			continue
		}
		var taken bool
		if taken, stop = take(u, w); taken {
			delete(q.waiting, u)
			continue
		}
		q.order[kept] = u
		kept++
	}
	copy(q.order[seen-kept:], q.order[:kept])
	q.order = q.order[seen-kept:]
}

// Waiting returns how long the first follower has been waiting for a slot, and how many followers wait.
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
