package cluster

import (
	"context"
	"iter"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Ownership says which organizations the node owns (package cluster).
type Ownership interface {
	Owned(t id.Tenant) bool
	Gains() uint64
}

// SharedStore is an engine as background work sees it. It implements schedule.Share and follow.Share.
type SharedStore struct {
	storage.Engine
	Ownership
}

// Tenants yields the tenants that have a ledger and are owned, in ascending order.
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

// Survey implements storage.Surveyor for the tenants that are owned.
func (s SharedStore) Survey(ctx context.Context, q storage.SurveyQuestion) iter.Seq2[storage.SurveyedLedger, error] {
	all := q
	q.Wanted = func(t id.Tenant) bool { return s.Owned(t) && all.Wants(t) }
	return storage.Survey(ctx, s.Engine, q)
}
