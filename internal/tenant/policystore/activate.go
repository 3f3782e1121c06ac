package policystore

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// Activation selects the version of a policy to activate.
type Activation struct {
	PolicyID string
	Version  uint64  // 0 means the latest one, which must be a draft; an archived version becomes active again
	Digest   id.Hash // digest that the caller has seen; zero means any
}

// Activate activates the draft of a policy, like ActivateVersion.
func (b *Policies) Activate(ctx context.Context, t id.Tenant, principal, policyID string) (Version, error) {
	return b.ActivateVersion(ctx, t, principal, Activation{PolicyID: policyID})
}

// ActivateVersion makes a version of a policy the organization's active one, and archives the previous one. Events
// after the statement are decided by it, and no earlier ones.
//
// It returns fault.NotFound for an unknown policy or version; fault.Conflict if the version is already active, is not
// the one that the caller has seen, fails its own tests, must be activated by another person, or requires more
// approvals than there are voters; fault.Invalid if it exceeds the current cost limits; and fault.RateLimited if
// changes come too fast.
func (b *Policies) ActivateVersion(
	ctx context.Context, t id.Tenant, principal string, a Activation,
) (activated Version, err error) {
	_, err = b.events.Append(ctx, t, principal, func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		return retryStale(func() (sysevent.Change, error) {
			act, v, err := b.prepareActivation(ctx, s, principal, a)
			activated = v
			return act, err
		})
	})
	if err != nil {
		return Version{}, fmt.Errorf("activate policy: %w", err)
	}
	return activated, nil
}

// prepareActivation returns the changes and statements of an activation, and the activated version.
func (b *Policies) prepareActivation(
	ctx context.Context, s *log.State, principal string, a Activation,
) (act sysevent.Change, v Version, err error) {
	t := s.Identity().Tenant
	p, err := b.readPolicy(ctx, t, a.PolicyID)
	if err == nil {
		a.Version, err = p.Value.choosePromotable(a.Version)
	}
	if err != nil {
		return act, v, err
	}
	active, err := b.stores.active.Get(ctx, t, "")
	if err != nil {
		return act, v, err
	}
	c := changes{now: b.currentTime()}
	if active.Version != 0 {
		if err := b.archiveActive(ctx, t, &c, &active.Value, a.PolicyID); err != nil {
			return act, v, err
		}
	}
	if c.records, err = b.countStatement(ctx, t, c.records); err != nil { // before the work
		return act, v, err
	}
	next, err := b.readVersion(ctx, t, a.PolicyID, a.Version)
	if err == nil {
		err = b.checkSecondPerson(ctx, s, principal, next.Value.WrittenBy)
	}
	if err == nil {
		err = b.checkQuorum(ctx, t, &next.Value)
	}
	if err != nil {
		return act, v, err
	}
	v, err = b.promoteVersion(ctx, t, &c, &p, &active, &next, a)
	return sysevent.Change{Statements: c.statements, Changes: c.records}, v, err
}

// choosePromotable returns the number of the requested version, where 0 means the draft. It returns an error if the
// version is already active.
func (p *policyRecord) choosePromotable(version uint64) (uint64, error) {
	switch {
	case version == 0 && !p.Draft:
		return 0, fault.New(fault.Conflict,
			"The latest version of the policy is already "+string(p.newestState(p.Newest))+": change it first")
	case version == 0:
		return p.Newest, nil
	case version > p.Newest:
		return 0, errNotFound()
	case version == p.Active:
		return 0, fault.New(fault.Conflict, "The version is already active")
	}
	return version, nil
}

// changes collects the statements and records of one append.
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

// addChange adds a record. Its parameters are the results of records.Store.Put.
func (c *changes) addChange(r storage.Change, err error) error {
	if err == nil {
		c.records = append(c.records, r)
	}
	return err
}

// archiveActive archives the active version before one of policyID is activated. If both belong to the same policy,
// the caller writes the policy's record.
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

// promoteVersion makes v, a version of p, the active one.
func (b *Policies) promoteVersion(
	ctx context.Context, t id.Tenant, c *changes, p *records.Versioned[policyRecord],
	active *records.Versioned[activeRecord], v *records.Versioned[versionRecord], a Activation,
) (Version, error) {
	if err := runPolicyTests(ctx, &v.Value); err != nil { // within the append
		return Version{}, err
	}
	p.Value.Draft = p.Value.Draft && a.Version != p.Value.Newest
	p.Value.Active, p.Value.UpdatedAt = a.Version, c.now
	v.Value.ActivatedAt, v.Value.ArchivedAt = c.now, 0
	activated, err := buildVersion(a.PolicyID, a.Version, &p.Value, &v.Value)
	if err != nil {
		return Version{}, err
	}
	if a.Digest != (id.Hash{}) && a.Digest != activated.Digest {
		return Version{}, fault.New(fault.Conflict, "policy_digest does not match the version: read it again")
	}
	active.Value = activeRecord{PolicyID: a.PolicyID, Version: a.Version, Digest: activated.Digest}
	c.addStatement(sysevent.PolicyActivated, &active.Value)
	if err := b.recordDigest(ctx, t, c, &active.Value); err != nil {
		return Version{}, err
	}
	if err := c.addChange(b.stores.versions.Put(*v)); err != nil {
		return Version{}, err
	}
	if err := c.addChange(b.stores.policies.Put(*p)); err != nil {
		return Version{}, err
	}
	return activated, c.addChange(b.stores.active.Put(*active))
}

// shownFailures is the maximum number of test failures in an error message.
const shownFailures = 5

// runPolicyTests returns an error if a version fails its tests, or if an older draft exceeds the current limits.
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
	fmt.Fprintf(&b, "%d of %s", len(failures),
		textcheck.Count(len(document.Tests), "test of the policy does not pass", "tests of the policy do not pass"))
	for _, f := range failures[:min(len(failures), shownFailures)] {
		b.WriteString("; " + f.String())
	}
	return &fault.Error{Kind: fault.Conflict, Code: "tests_failed", Message: b.String()}
}
