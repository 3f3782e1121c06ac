package datadir

import "github.com/agentledger/agentledger/internal/config"

// AnchorFirst reports whether the anchor of an event is written before the response. An append that the embedded engine
// acknowledged is on disk, and only a manual rollback removes it. PostgreSQL can lose an append in a failover.
func (s *Store) AnchorFirst(c config.Tuning) func() bool {
	synchronous := func() bool { return true }
	if replicated, ok := s.Engine.(interface{ Synchronous() bool }); ok {
		synchronous = replicated.Synchronous
	}
	return func() bool { return c.AnchorsFirst(synchronous()) }
}
