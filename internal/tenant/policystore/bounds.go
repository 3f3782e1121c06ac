package policystore

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/storage"
)

// policyResource counts an organization's policies. A policy can be deleted while it has only its first draft.
func policyResource() quota.Resource {
	return quota.Resource{
		Kind: kindPolicy,
		Most: func(l quota.Limits) uint64 { return l.Policies },
		Full: func(most uint64) string {
			return fmt.Sprintf("The organization has %s, as many as its plan allows",
				textcheck.Count(most, "policy", "policies"))
		},
	}
}

// Count returns how many policies an organization has.
func (b *Policies) Count(ctx context.Context, t id.Tenant) (uint64, error) {
	c, err := b.quota.Count(ctx, t, policyResource())
	return c.Made, err
}

// countStatement adds the changes that count one more change by members.
func (b *Policies) countStatement(
	ctx context.Context, t id.Tenant, changes []storage.Change,
) ([]storage.Change, error) {
	paced, err := b.quota.CountStatement(ctx, t)
	return append(changes, paced...), err
}

// checkPolicyBounds returns the changes that count a written draft. number is the version of the draft; added reports
// whether it is a new version. It returns fault.Conflict if a limit of the organization is exceeded, and
// fault.RateLimited if drafts come too fast.
func (b *Policies) checkPolicyBounds(
	ctx context.Context, t id.Tenant, number uint64, added bool,
) (changes []storage.Change, err error) {
	if added {
		if changes, err = b.checkVersionBounds(ctx, t, number); err != nil {
			return nil, err
		}
	}
	return b.countStatement(ctx, t, changes)
}

func (b *Policies) checkVersionBounds(ctx context.Context, t id.Tenant, number uint64) ([]storage.Change, error) {
	l, err := b.quota.Limits(ctx, t)
	switch {
	case err != nil:
		return nil, err
	case l.PolicyVersions > 0 && number > l.PolicyVersions:
		return nil, &fault.Error{Kind: fault.Conflict, Code: "plan_limit",
			Message: fmt.Sprintf("The policy has %s, as many as the plan allows: create another policy",
				textcheck.Count(number-1, "version"))}
	case number > 1:
		return nil, nil
	}
	counted, err := b.quota.Make(ctx, t, policyResource())
	return []storage.Change{counted}, err
}
