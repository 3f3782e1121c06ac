package forward

import (
	"maps"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cluster"
)

// silences contains the nodes that recently did not respond to a public read of an organization. Without it, each such
// read would wait for the same node again. Reads of other organizations of the node are not affected.
type silences struct {
	mu    sync.Mutex
	until map[silence]time.Time // nil until the first silence
}

type silence struct {
	node   cluster.NodeID
	tenant id.Tenant
}

// Bounds of silences.
const (
	silenceTime = time.Second // during which no other public read of the organization is passed to the node
	maxSilences = 1024        // beyond which expired ones are removed
)

// note records that a node is silent.
func (s *silences) note(which silence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.until == nil {
		s.until = make(map[silence]time.Time)
	}
	if len(s.until) >= maxSilences {
		maps.DeleteFunc(s.until, func(_ silence, until time.Time) bool { return now.After(until) })
	}
	s.until[which] = now.Add(silenceTime)
}

// has reports whether a node was recently silent.
func (s *silences) has(which silence) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[which])
}
