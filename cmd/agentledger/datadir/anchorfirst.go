package datadir

import "github.com/agentledger/agentledger/internal/config"

// AnchorFirst returns whether the anchor of an event is written before its answer. An
// append that the embedded engine acknowledged is on the disk, and only a rollback by
// people removes it. PostgreSQL can lose an append in a fail-over.
func (s *Store) AnchorFirst(c config.Tuning) func() bool {
	synchronous := func() bool { return true }
	if replicated, ok := s.Engine.(interface{ Synchronous() bool }); ok {
		synchronous = replicated.Synchronous
	}
	return func() bool { return c.AnchorsFirst(synchronous()) }
}
