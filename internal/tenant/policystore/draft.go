package policystore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// tries bounds how often an operation is repeated after concurrent changes of the policy.
const tries = 16

// Create creates a policy with version 1 as a draft. document must be valid for policy.Parse and must not contain
// version. If it does not contain policy_id, the service generates one. A draft has no effect on events and is not
// stated.
//
// It returns the errors of policy.Parse, fault.Conflict if the policy_id is taken or the organization has as many
// policies as its plan allows, and fault.RateLimited if drafts come too fast.
func (b *Policies) Create(ctx context.Context, t id.Tenant, principal string, document []byte) (Version, error) {
	p, err := b.parseDocument(ctx, t, document)
	if err != nil {
		return Version{}, err
	}
	if p.Version != 0 {
		return Version{}, errVersionGiven()
	}
	if p.ID == "" {
		p.ID = "pol_" + strings.ToLower(rand.Text())
	}
	leave, err := b.lanes.Lock(ctx, t)
	if err != nil {
		return Version{}, err
	}
	defer leave()
	return retryStale(func() (Version, error) {
		old, err := b.stores.policies.Get(ctx, t, p.ID)
		if err != nil {
			return Version{}, err
		}
		if old.Version != 0 {
			return Version{}, fault.New(fault.Conflict, "policy_id is taken")
		}
		return b.writeDraft(ctx, t, principal, old, records.Versioned[versionRecord]{}, p)
	})
}

// Draft changes the draft of a policy, or starts one with the next version, based on the latest one. patch is a JSON
// object: each of its members replaces the document's member with that name; null replaces it by its default. patch
// may be a version as returned by Get: then version and policy_digest must match the latest version, and the members
// that are not part of a document are ignored. If the patch changes nothing, Draft returns the latest version
// unchanged, unless that is archived: then it starts a draft with the same document.
//
// It returns the errors of policy.Parse, fault.NotFound, fault.Conflict if the policy was changed in the meantime or
// has as many versions as the plan allows, and fault.RateLimited.
func (b *Policies) Draft(ctx context.Context, t id.Tenant, principal, policyID string, patch []byte) (Version, error) {
	body, err := parsePatchBody(policyID, patch)
	if err != nil {
		return Version{}, err
	}
	leave, err := b.lanes.Lock(ctx, t)
	if err != nil {
		return Version{}, err
	}
	defer leave()
	return retryStale(func() (Version, error) {
		p, err := b.readPolicy(ctx, t, policyID)
		if err != nil {
			return Version{}, err
		}
		v, err := b.readVersion(ctx, t, policyID, p.Value.Newest)
		if err != nil {
			return Version{}, err
		}
		document, err := b.applyPatch(ctx, t, policyID, &p.Value, &v.Value, &body)
		if err != nil {
			return Version{}, err
		}
		newest, err := buildVersion(policyID, p.Value.Newest, &p.Value, &v.Value)
		if err != nil || newest.State != Archived && sameDocument(document, &newest) {
			return newest, err
		}
		if !p.Value.Draft {
			v = records.Versioned[versionRecord]{} // the next version
		}
		return b.writeDraft(ctx, t, principal, p, v, document)
	})
}

// sameDocument reports whether a document equals the document of a version.
func sameDocument(document policy.Policy, v *Version) bool {
	document.Version = v.Version
	return bytes.Equal(document.Document(), v.Document)
}

// applyPatch returns the latest version of a policy with the members of a patch.
func (b *Policies) applyPatch(
	ctx context.Context, t id.Tenant, policyID string, p *policyRecord, v *versionRecord, body *patchBody,
) (policy.Policy, error) {
	newest, err := buildVersion(policyID, p.Newest, p, v)
	if err == nil {
		err = body.base.checkNewest(&newest)
	}
	if err != nil {
		return policy.Policy{}, err
	}
	changed, err := overlayMembers(v.Document, body.members)
	if err != nil {
		return policy.Policy{}, err
	}
	return b.parseDocument(ctx, t, changed)
}

// writeDraft writes document as the draft of p. It replaces the draft v or, if v is the zero value, creates the next
// version.
func (b *Policies) writeDraft(
	ctx context.Context, t id.Tenant, principal string, p records.Versioned[policyRecord],
	v records.Versioned[versionRecord], document policy.Policy,
) (Version, error) {
	added := v.Version == 0
	if added {
		p.Value.Newest++
	}
	if _, err := b.checkPolicyBounds(ctx, t, p.Value.Newest, added); err != nil { // before the work
		return Version{}, err
	}
	document.Version = p.Value.Newest
	p.Value.Name, p.Value.Draft = document.Name, true
	p.Value.UpdatedAt, p.Value.UpdatedBy = b.currentTime(), principal
	v.Key = encodeVersionKey(document.ID, document.Version)
	v.Value = versionRecord{Document: document.Document(), WrittenAt: b.currentTime(), WrittenBy: principal}
	if len(v.Value.Document) > policy.MaxBytes {
		return Version{}, fault.New(fault.TooLarge, "The policy with all defaults written out is larger than 1 MiB")
	}
	first, err := b.stores.policies.Put(p)
	if err != nil {
		return Version{}, err
	}
	second, err := b.stores.versions.Put(v)
	if err != nil {
		return Version{}, err
	}
	counted, err := b.checkPolicyBounds(ctx, t, p.Value.Newest, added)
	if err != nil {
		return Version{}, err
	}
	if err := b.writeVersion(ctx, t, append(counted, first, second)...); err != nil {
		return Version{}, err
	}
	return buildVersion(document.ID, document.Version, &p.Value, &v.Value)
}

// parseDocument parses a document and compiles its conditions. It acquires a processor, because hundreds of
// conditions take a tenth of a second.
func (b *Policies) parseDocument(ctx context.Context, t id.Tenant, document []byte) (policy.Policy, error) {
	tenant := admission.TenantOf(t)
	if err := b.processors.Acquire(ctx, tenant, 1); err != nil {
		return policy.Policy{}, fmt.Errorf("wait for a turn: %w", err)
	}
	defer b.processors.Release(tenant, 1)
	p, err := policy.ParseWithin(ctx, document)
	if err == nil && !textcheck.Name(p.Name, 1, policy.MaxName) { // older documents may have such a name
		return p, fault.New(fault.Invalid, "name must not have control characters")
	}
	return p, err
}

func (b *Policies) writeVersion(ctx context.Context, t id.Tenant, changes ...storage.Change) error {
	err := b.records.Write(ctx, t, changes)
	if err != nil && !errors.Is(err, storage.ErrStale) {
		return &fault.Error{
			Kind:    fault.Unavailable,
			Code:    "unavailable",
			Message: "The draft can't be written",
			Err:     err,
		}
	}
	return err
}

// retryStale calls try again after concurrent changes.
func retryStale[T any](try func() (T, error)) (T, error) {
	var err error
	for range tries {
		var result T
		if result, err = try(); !errors.Is(err, storage.ErrStale) {
			return result, err
		}
	}
	var none T
	return none, &fault.Error{
		Kind:    fault.Overloaded,
		Code:    "overloaded",
		Message: "The policy changes too often",
		Err:     err,
	}
}

func errVersionGiven() error {
	return fault.New(fault.Invalid, "version is assigned by the service: omit it")
}
