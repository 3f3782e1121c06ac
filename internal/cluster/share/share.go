// Package share shows a node its part of the store that it shares with other nodes.
//
// Invariants:
//
//   - A Store lists the organizations that the node owns, and reads and writes those of all.
//   - Work that is done for each organization of a Store is done by one node at a time, as far as ownership goes. It
//     MUST be safe when two nodes do it, because ownership promises nothing (package cluster).
package share

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Cluster says which organizations the node owns (package cluster).
type Cluster interface {
	Owned(t id.Tenant) bool
	Gains() uint64
}

// Store is an engine as background work sees it. It implements schedule.Share and follow.Share.
type Store struct {
	storage.Engine
	Cluster
}

// Tenants yields the tenants that have a ledger and are owned, in ascending order.
func (s Store) Tenants(ctx context.Context) iter.Seq2[id.Tenant, error] {
	return func(yield func(id.Tenant, error) bool) {
		for t, err := range s.Engine.Tenants(ctx) {
			if err == nil && !s.Owned(t) {
				continue
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// Survey implements storage.Surveyor for the tenants that are owned.
func (s Store) Survey(ctx context.Context, q storage.SurveyQuestion) iter.Seq2[storage.SurveyedLedger, error] {
	all := q
	q.Wanted = func(t id.Tenant) bool { return s.Owned(t) && all.Wants(t) }
	return storage.Survey(ctx, s.Engine, q)
}
