package cluster

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Ownership reports which organizations a node owns. Cluster implements it.
type Ownership interface {
	Owned(t id.Tenant) bool
	Gains() uint64
}

// SharedStore is the view of a shared store for the background work of one node: it lists only the organizations that the
// node owns, but reads and writes those of all. It implements schedule.Share and follow.Share.
//
// Work that is done for each organization of a SharedStore is usually done by one node at a time. It must be safe if two
// nodes do it, because ownership is no guarantee.
type SharedStore struct {
	storage.Engine
	Ownership
}

// Tenants yields the owned tenants that have a ledger, in ascending order.
func (s SharedStore) Tenants(ctx context.Context) iter.Seq2[id.Tenant, error] {
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

// Survey implements storage.Surveyor for the owned tenants.
func (s SharedStore) Survey(ctx context.Context, q storage.SurveyQuestion) iter.Seq2[storage.SurveyedLedger, error] {
	all := q
	q.Wanted = func(t id.Tenant) bool { return s.Owned(t) && all.Wants(t) }
	return storage.Survey(ctx, s.Engine, q)
}
