package policystore

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Delete takes the draft of a policy away, and the policy with it when no version
// of it was ever active. fault.NotFound; fault.Conflict when there is no draft.
func (b *Rulebook) Delete(ctx context.Context, t id.Tenant, policyID string) error {
	_, err := retry(func() (struct{}, error) {
		p, err := b.policy(ctx, t, policyID)
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

func (b *Rulebook) deleteDraft(ctx context.Context, t id.Tenant, policyID string, p records.Versioned[policyRecord]) error {
	v, err := b.version(ctx, t, policyID, p.Value.Newest)
	if err != nil {
		return err
	}
	gone := storage.Change{Kind: kindVersion, Key: versionKey(policyID, p.Value.Newest), If: v.Version}
	if p.Value.Newest == 1 {
		counted, err := b.quota.Remove(ctx, t, policiesOf())
		if err != nil {
			return err
		}
		return b.write(ctx, t, gone, storage.Change{Kind: kindPolicy, Key: policyID, If: p.Version}, counted)
	}
	before, err := b.version(ctx, t, policyID, p.Value.Newest-1)
	if err != nil {
		return err
	}
	document, err := before.Value.document()
	if err != nil {
		return err
	}
	p.Value.Newest, p.Value.Draft, p.Value.Name, p.Value.UpdatedAt = p.Value.Newest-1, false, document.Name, b.now()
	kept, err := b.stores.policies.Put(p)
	if err != nil {
		return err
	}
	return b.write(ctx, t, gone, kept)
}
