package takeover

import (
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Uncompared contains checkpoints of other processes that could not be compared with ledgers in memory because the
// store did not answer. The zero value is empty. Methods may be called concurrently.
type Uncompared struct {
	mu          sync.Mutex
	checkpoints map[id.Origin]tlog.Checkpoint // nil if empty
}

// Take removes all checkpoints, and returns them together with shown: the largest of each origin.
func (u *Uncompared) Take(shown []tlog.Checkpoint) map[id.Origin]tlog.Checkpoint {
	u.mu.Lock()
	all := u.checkpoints
	u.checkpoints = nil
	u.mu.Unlock()
	if all == nil {
		all = make(map[id.Origin]tlog.Checkpoint, len(shown))
	}
	for _, c := range shown {
		addLarger(all, c)
	}
	return all
}

// Keep adds a checkpoint for the next Take.
func (u *Uncompared) Keep(c tlog.Checkpoint) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.checkpoints == nil {
		u.checkpoints = make(map[id.Origin]tlog.Checkpoint)
	}
	addLarger(u.checkpoints, c)
}

func addLarger(all map[id.Origin]tlog.Checkpoint, c tlog.Checkpoint) {
	if known, found := all[c.Origin]; !found || known.Size < c.Size {
		all[c.Origin] = c
	}
}
