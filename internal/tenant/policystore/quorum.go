package policystore

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// Voters counts the members of an organization who may vote on approvals now. It may stop counting at enough.
// account.Accounts implements it.
type Voters interface {
	CountVoters(ctx context.Context, t id.Tenant, enough int) (int, error)
}

// checkQuorum returns an error if a version requires more approvals than there are voters, because its obligation
// could never be fulfilled.
func (b *Policies) checkQuorum(ctx context.Context, t id.Tenant, v *versionRecord) error {
	document, err := v.parseDocument()
	if err != nil {
		return err
	}
	return b.checkDocumentQuorum(ctx, t, &document)
}

func (b *Policies) checkDocumentQuorum(ctx context.Context, t id.Tenant, document *policy.Policy) error {
	rule, most := largestQuorum(document)
	if b.voters == nil || most <= 1 {
		return nil // every organization has an owner
	}
	voters, err := b.voters.CountVoters(ctx, t, most)
	if err != nil || voters >= most {
		return err
	}
	return &fault.Error{Kind: fault.Conflict, Code: "quorum_unreachable", Message: fmt.Sprintf(
		"The rule %s requires %d approvals, but the number of members who may vote is %d", rule, most, voters)}
}

// largestQuorum returns the largest number of approvals that a rule requires, and the first such rule. It ignores
// shadow rules.
func largestQuorum(p *policy.Policy) (rule string, most int) {
	for i := range p.Rules {
		r := &p.Rules[i]
		for _, o := range r.Obligations {
			if r.Mode != policy.Shadow && o.Approvals > most {
				rule, most = r.ID, o.Approvals
			}
		}
	}
	return rule, most
}
