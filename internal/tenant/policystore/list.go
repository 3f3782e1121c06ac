package policystore

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
)

// Get returns a version of a policy, the newest one for version 0.
// fault.NotFound.
func (b *Rulebook) Get(ctx context.Context, t id.Tenant, policyID string, version uint64) (Version, error) {
	return retry(func() (Version, error) {
		p, err := b.policy(ctx, t, policyID)
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
		v, err := b.version(ctx, t, policyID, number)
		if err != nil {
			return Version{}, err
		}
		return whole(policyID, number, &p.Value, &v.Value)
	})
}

// List returns at most limit policies with an id after the given one, in
// ascending order of id.
func (b *Rulebook) List(ctx context.Context, t id.Tenant, after string, limit int) ([]Listed, error) {
	found, err := b.stores.policies.List(ctx, t, records.After(after), limit)
	list := make([]Listed, len(found))
	for i := range found {
		p := &found[i].Value
		list[i] = Listed{PolicyID: found[i].Key, Name: p.Name, Version: p.Newest, State: p.state(p.Newest), Active: p.Active, UpdatedAt: p.UpdatedAt}
	}
	return list, err
}
