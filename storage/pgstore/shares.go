package pgstore

import "sync"

// share is the part of an append that goes through one queue.
type share struct {
	together  []part    // share one statement
	arguments arguments // for together; built while the previous append is in flight
	alone     []part    // need a transaction each
	done      func()    // called when all parts have results
}

func (s *share) appendPart(p part) {
	if p.creates() || len(p.Changes) > 0 || p.Erases() {
		s.alone = append(s.alone, p)
	} else {
		s.together = append(s.together, p)
	}
}

// shares are the shares that wait for a queue. Append never waits for a queue. The callers of Append bound the number
// of waiting shares, because each caller waits for its own appends.
type shares struct {
	mu      sync.Mutex
	more    sync.Cond
	waiting []*share
	closed  bool
}

func (q *shares) addWaiting(s *share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, s)
	q.more.Signal()
}

// takeWaiting waits for a share. It returns nil once the queue is closed and empty.
func (q *shares) takeWaiting() *share {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 {
		if q.closed {
			return nil
		}
		q.more.Wait()
	}
	s := q.waiting[0]
	q.waiting[0] = nil
	if q.waiting = q.waiting[1:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	return s
}

func (q *shares) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Signal()
}
