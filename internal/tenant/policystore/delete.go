package policystore

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Delete deletes the draft of a policy, and the policy too if no version was ever active. It returns fault.NotFound
// for an unknown policy, and fault.Conflict if there is no draft.
func (b *Policies) Delete(ctx context.Context, t id.Tenant, policyID string) error {
	_, err := retryStale(func() (struct{}, error) {
		p, err := b.readPolicy(ctx, t, policyID)
		if err == nil && !p.Value.Draft {
			err = fault.New(fault.Conflict, "The policy has no draft")
		}
		if err == nil {
			err = b.deleteDraft(ctx, t, policyID, p)
		}
		return struct{}{}, err
	})
	return err
}

func (b *Policies) deleteDraft(
	ctx context.Context, t id.Tenant, policyID string, p records.Versioned[policyRecord],
) error {
	v, err := b.readVersion(ctx, t, policyID, p.Value.Newest)
	if err != nil {
		return err
	}
	removed := storage.Change{Kind: kindVersion, Key: encodeVersionKey(policyID, p.Value.Newest), If: v.Version}
	if p.Value.Newest == 1 {
		counted, err := b.quota.Remove(ctx, t, policyResource())
		if err != nil {
			return err
		}
		return b.writeVersion(ctx, t, removed, storage.Change{Kind: kindPolicy, Key: policyID, If: p.Version}, counted)
	}
	before, err := b.readVersion(ctx, t, policyID, p.Value.Newest-1)
	if err != nil {
		return err
	}
	document, err := before.Value.parseDocument()
	if err != nil {
		return err
	}
	p.Value.Newest--
	p.Value.Draft = false
	p.Value.Name, p.Value.UpdatedAt, p.Value.UpdatedBy = document.Name, b.currentTime(), before.Value.WrittenBy
	updated, err := b.stores.policies.Put(p)
	if err != nil {
		return err
	}
	return b.writeVersion(ctx, t, removed, updated)
}
