package policystore

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Settings returns the policy settings of an organization. org.Orgs implements it.
type Settings interface {
	TwoPersonPolicy(ctx context.Context, s *log.State) (bool, error)
	PublishesPolicies(ctx context.Context, s *log.State) (bool, error)
}

// Deactivate archives the active version of a policy. No policy is active after that, so every event has its declared
// decision.
//
// It returns fault.NotFound for an unknown policy; fault.Conflict if the policy is not active or the organization has
// the two-person rule, because one person alone would remove all rules; and fault.RateLimited if changes come too
// fast.
func (b *Policies) Deactivate(
	ctx context.Context, t id.Tenant, principal, policyID string,
) (archived Version, err error) {
	_, err = b.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		return retryStale(func() (sysevent.Change, error) {
			act, v, err := b.prepareDeactivation(ctx, s, policyID)
			archived = v
			return act, err
		})
	})
	if err != nil {
		return Version{}, fmt.Errorf("deactivate policy: %w", err)
	}
	return archived, nil
}

func (b *Policies) prepareDeactivation(
	ctx context.Context, s *log.State, policyID string,
) (act sysevent.Change, v Version, err error) {
	t := s.Identity().Tenant
	p, err := b.readPolicy(ctx, t, policyID)
	if err != nil {
		return act, v, err
	}
	active, err := b.stores.active.Get(ctx, t, "")
	if err != nil {
		return act, v, err
	}
	if active.Version == 0 || active.Value.PolicyID != policyID {
		return act, v, fault.New(fault.Conflict, "The policy is not active")
	}
	if two, err := b.needsTwoPeople(ctx, s); err != nil || two {
		return act, v, orSecondPerson(err,
			"Policies of this organization need two people: activate a version that another person has changed")
	}
	c := changes{now: b.currentTime()}
	if err := b.archiveActive(ctx, t, &c, &active.Value, policyID); err != nil {
		return act, v, err
	}
	if c.records, err = b.countStatement(ctx, t, c.records); err != nil {
		return act, v, err
	}
	p.Value.Active, p.Value.UpdatedAt = 0, c.now
	if err := c.addChange(b.stores.policies.Put(p)); err != nil {
		return act, v, err
	}
	c.records = append(c.records, storage.Change{Kind: kindActive, If: active.Version})
	ended, err := b.readVersion(ctx, t, policyID, active.Value.Version)
	if err != nil {
		return act, v, err
	}
	ended.Value.ArchivedAt = c.now
	v, err = buildVersion(policyID, active.Value.Version, &p.Value, &ended.Value)
	return sysevent.Change{Statements: c.statements, Changes: c.records}, v, err
}

// checkSecondPerson returns an error if the principal last changed the version and the organization has the
// two-person rule.
func (b *Policies) checkSecondPerson(ctx context.Context, s *log.State, principal, writtenBy string) error {
	if principal != writtenBy {
		return nil
	}
	if two, err := b.needsTwoPeople(ctx, s); err != nil || two {
		return orSecondPerson(err, "You changed this version last: another person has to activate it")
	}
	return nil
}

func (b *Policies) needsTwoPeople(ctx context.Context, s *log.State) (bool, error) {
	if b.settings == nil {
		return false, nil
	}
	return b.settings.TwoPersonPolicy(ctx, s)
}

// orSecondPerson returns err, or if it is nil, the error of the two-person rule.
func orSecondPerson(err error, message string) error {
	if err != nil {
		return err
	}
	return &fault.Error{Kind: fault.Conflict, Code: "second_person", Message: message}
}
