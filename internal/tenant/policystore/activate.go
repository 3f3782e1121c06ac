package policystore

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Activate makes the newest version of a policy, which must be a draft, the organization's active
// one, and archives the earlier one. Events above the statement are judged by it, and none below.
//
// Errors: fault.NotFound; fault.Conflict when the newest version is not a draft, or its own tests do
// not pass; fault.Invalid when it is beyond the costs of a policy that is saved now;
// fault.RateLimited for changes that come too fast.
func (b *Policies) Activate(ctx context.Context, t id.Tenant, principal, policyID string) (Version, error) {
	var activated Version
	_, err := b.events.Append(ctx, t, principal, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		return retryStale(func() (sysevent.Change, error) {
			act, v, err := b.prepareActivation(ctx, t, policyID)
			activated = v
			return act, err
		})
	})
	if err != nil {
		return Version{}, fmt.Errorf("activate policy: %w", err)
	}
	return activated, nil
}

// prepareActivation returns the act of an activation and the version as it will be.
func (b *Policies) prepareActivation(
	ctx context.Context, t id.Tenant, policyID string,
) (act sysevent.Change, v Version, err error) {
	p, err := b.readPolicy(ctx, t, policyID)
	if err != nil {
		return act, v, err
	}
	if !p.Value.Draft {
		return act, v, fault.New(fault.Conflict,
			"The newest version of the policy is "+string(p.Value.newestState(p.Value.Newest))+
				" already: change it first")
	}
	active, err := b.stores.active.Get(ctx, t, "")
	if err != nil {
		return act, v, err
	}
	c := changes{now: b.currentTime()}
	if active.Version != 0 {
		if err := b.archiveActive(ctx, t, &c, &active.Value, policyID); err != nil {
			return act, v, err
		}
	}
	if c.records, err = b.countStatement(ctx, t, c.records); err != nil { // before the work
		return act, v, err
	}
	v, err = b.promoteDraft(ctx, t, &c, &p, &active, policyID)
	return sysevent.Change{Statements: c.statements, Changes: c.records}, v, err
}

// changes gathers one act.
type changes struct {
	now        id.Instant
	statements []sysevent.Statement
	records    []storage.Change
}

func (c *changes) addStatement(kind sysevent.Kind, a *activeRecord) {
	c.statements = append(c.statements, sysevent.Statement{Kind: kind, Payload: map[string]any{
		"policy_id": a.PolicyID, "policy_version": a.Version, "policy_digest": a.Digest,
	}})
}

// addChange adds a record, as the return values of records.Store.Put.
func (c *changes) addChange(r storage.Change, err error) error {
	if err == nil {
		c.records = append(c.records, r)
	}
	return err
}

// archiveActive ends the active version, to make room for one of policyID. That
// policy's own record is left to promote.
func (b *Policies) archiveActive(
	ctx context.Context, t id.Tenant, c *changes, active *activeRecord, policyID string,
) error {
	v, err := b.readVersion(ctx, t, active.PolicyID, active.Version)
	if err != nil {
		return err
	}
	v.Value.ArchivedAt = c.now
	if err := c.addChange(b.stores.versions.Put(v)); err != nil {
		return err
	}
	c.addStatement(sysevent.PolicyArchived, active)
	if active.PolicyID == policyID {
		return nil
	}
	other, err := b.readPolicy(ctx, t, active.PolicyID)
	if err != nil {
		return err
	}
	other.Value.Active, other.Value.UpdatedAt = 0, c.now
	return c.addChange(b.stores.policies.Put(other))
}

// promoteDraft makes the draft of p the active version.
func (b *Policies) promoteDraft(
	ctx context.Context, t id.Tenant, c *changes, p *records.Versioned[policyRecord],
	active *records.Versioned[activeRecord], policyID string,
) (Version, error) {
	number := p.Value.Newest
	v, err := b.readVersion(ctx, t, policyID, number)
	if err != nil {
		return Version{}, err
	}
	if err := runPolicyTests(ctx, &v.Value); err != nil { // in the turn of the act
		return Version{}, err
	}
	p.Value.Draft, p.Value.Active, p.Value.UpdatedAt = false, number, c.now
	v.Value.ActivatedAt = c.now
	activated, err := isWholeNumber(policyID, number, &p.Value, &v.Value)
	if err != nil {
		return Version{}, err
	}
	active.Value = activeRecord{PolicyID: policyID, Version: number, Digest: activated.Digest}
	c.addStatement(sysevent.PolicyActivated, &active.Value)
	if err := c.addChange(b.stores.versions.Put(v)); err != nil {
		return Version{}, err
	}
	if err := c.addChange(b.stores.policies.Put(*p)); err != nil {
		return Version{}, err
	}
	return activated, c.addChange(b.stores.active.Put(*active))
}

// shownFailures is how many failures of tests an error tells.
const shownFailures = 5

// runPolicyTests refuses a version whose tests do not pass, and a draft of before that is
// beyond the bounds of today.
func runPolicyTests(ctx context.Context, v *versionRecord) error {
	document, err := v.parseDocument()
	if err != nil {
		return err
	}
	compiled, err := policy.CompileBounded(ctx, document)
	if fault.Is(err, fault.Invalid) {
		return err
	}
	if err != nil {
		return errUnreadable("compile draft", err)
	}
	failures, err := compiled.RunTests(ctx, document.Tests)
	if err != nil {
		return err
	}
	if len(failures) == 0 {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of the policy's %d tests do not pass", len(failures), len(document.Tests))
	for _, f := range failures[:min(len(failures), shownFailures)] {
		b.WriteString("; " + f.String())
	}
	return &fault.Error{Kind: fault.Conflict, Code: "tests_failed", Message: b.String()}
}
