package org

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// BySlug returns the handle of an organization, or fault.NotFound if there is none.
func (o *Orgs) BySlug(ctx context.Context, slug id.Slug) (id.Tenant, error) {
	return o.slugs.Get(ctx, slug, func(ctx context.Context) (id.Tenant, error) {
		t, r, err := o.findClaimed(ctx, kindSlugClaim, string(slug))
		if err == nil && r.Slug != slug {
			return 0, errNotFound()
		}
		return t, err
	})
}

// ByID returns the handle of an organization, or fault.NotFound if there is none.
func (o *Orgs) ByID(ctx context.Context, organization id.Organization) (id.Tenant, error) {
	return o.ids.Get(ctx, organization, func(ctx context.Context) (id.Tenant, error) {
		t, r, err := o.findClaimed(ctx, kindIDClaim, organization.String())
		if err == nil && r.OrganizationID != organization {
			return 0, errNotFound()
		}
		return t, err
	})
}

// findClaimed returns the organization that holds a claim.
func (o *Orgs) findClaimed(ctx context.Context, kind storage.Kind, name string) (id.Tenant, orgRecord, error) {
	claim, err := o.readHolder(ctx, kind, name)
	if err != nil {
		return 0, orgRecord{}, err
	}
	if claim.version == 0 {
		return 0, orgRecord{}, errNotFound()
	}
	stored, _, err := o.readRecord(ctx, claim.tenant)
	if isAbsent(err) {
		return 0, orgRecord{}, errNotFound()
	}
	if err != nil {
		return 0, orgRecord{}, errUnreadable("find organization", err)
	}
	return claim.tenant, stored, nil
}

// Slug returns the slug of an organization, or fault.NotFound if there is none.
func (o *Orgs) Slug(ctx context.Context, t id.Tenant) (id.Slug, error) {
	s, err := o.Summary(ctx, t)
	return s.Slug, err
}

// Summary is the part of an organization that members see before they sign in to it.
type Summary struct {
	ID   id.Organization
	Slug id.Slug
	Name string
}

// Summary returns the names of an organization without reading its ledger. It returns fault.NotFound if there is none.
func (o *Orgs) Summary(ctx context.Context, t id.Tenant) (Summary, error) {
	stored, _, err := o.readRecord(ctx, t)
	if isAbsent(err) {
		return Summary{}, errNotFound()
	}
	if err != nil {
		return Summary{}, errUnreadable("read organization", err)
	}
	return Summary{ID: stored.OrganizationID, Slug: stored.Slug, Name: stored.Name}, nil
}
