package policystore

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
)

// Get returns a version of a policy, the newest one for version 0.
// fault.NotFound.
func (b *Policies) Get(ctx context.Context, t id.Tenant, policyID string, version uint64) (Version, error) {
	return retryStale(func() (Version, error) {
		p, err := b.readPolicy(ctx, t, policyID)
		if err != nil {
			return Version{}, err
		}
		number := version
		if number == 0 {
			number = p.Value.Newest
		}
		if number > p.Value.Newest {
			return Version{}, errNotFound()
		}
		v, err := b.readVersion(ctx, t, policyID, number)
		if err != nil {
			return Version{}, err
		}
		return buildVersion(policyID, number, &p.Value, &v.Value)
	})
}

// List returns at most limit policies with an id after the given one, in
// ascending order of id.
func (b *Policies) List(ctx context.Context, t id.Tenant, after string, limit int) ([]Listed, error) {
	found, err := b.stores.policies.List(ctx, t, records.After(after), limit)
	list := make([]Listed, len(found))
	for i := range found {
		p := &found[i].Value
		list[i] = Listed{
			PolicyID:  found[i].Key,
			Name:      p.Name,
			Version:   p.Newest,
			State:     p.newestState(p.Newest),
			Active:    p.Active,
			UpdatedAt: p.UpdatedAt,
		}
	}
	return list, err
}
