package policystore

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
)

// Get returns a version of a policy, or the latest one if version is 0. It returns fault.NotFound if there is none.
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

// maxPage bounds the bytes of documents that Versions reads in addition to one version.
const maxPage = 1 << 20

// Versions returns versions of a policy below a number, latest first: at most limit, and fewer if their documents are
// large. If below is 0, it starts with the latest. It returns at least one version, unless there is none. It returns
// fault.NotFound for an unknown policy.
func (b *Policies) Versions(ctx context.Context, t id.Tenant, policyID string, below uint64, limit int) (
	found []Version, err error) {
	p, err := b.readPolicy(ctx, t, policyID)
	if err != nil {
		return nil, err
	}
	number := p.Value.Newest
	if below != 0 {
		number = min(number, below-1)
	}
	for read := 0; number > 0 && len(found) < limit && read < maxPage; number-- {
		v, err := b.stores.versions.Get(ctx, t, encodeVersionKey(policyID, number))
		if err != nil {
			return nil, err
		}
		if !v.Exists() {
			continue // a draft that was deleted in the meantime
		}
		version, err := buildVersion(policyID, number, &p.Value, &v.Value)
		if err != nil {
			return nil, err
		}
		found, read = append(found, version), read+len(version.Document)
	}
	return found, nil
}

// List returns at most limit policies with an ID after the given one, in ascending order.
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
			UpdatedBy: p.UpdatedBy,
		}
	}
	return list, err
}
