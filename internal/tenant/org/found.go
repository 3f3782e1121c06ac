package org

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Founding describes a new organization.
type Founding struct {
	Tenant     id.Tenant // a fresh random handle
	ID         id.Organization
	Slug       id.Slug
	Name       string
	Plan       string        // if "", DefaultPlan
	Disclosure id.Disclosure // if 0, record
}

// CheckFounding returns fault.Invalid for an invalid founding. It writes nothing.
func (o *Orgs) CheckFounding(f Founding) error {
	if err := checkName(f.Name); err != nil {
		return err
	}
	if _, err := ParseSlug(string(f.Slug)); err != nil {
		return err
	}
	if f.Plan == "" {
		return nil
	}
	return o.checkPlan(f.Plan)
}

// FoundOrganization claims the ID and the slug of an organization for its handle, and returns the first records of
// its ledger. Until they are written the organization does not exist, and another founding may take over the claims;
// writing the records then fails. A founding must not be repeated with the same handle.
//
// It returns fault.Conflict if an organization has or had the ID or the slug.
func (o *Orgs) FoundOrganization(ctx context.Context, f Founding) ([]storage.Change, error) {
	if err := o.CheckFounding(f); err != nil {
		return nil, err
	}
	if err := o.claimName(ctx, f); err != nil {
		return nil, err
	}
	value, err := json.Marshal(f.toRecord())
	if err != nil {
		return nil, fmt.Errorf("found organization: %w", err)
	}
	return []storage.Change{{Kind: kindOrg, Value: value}}, nil
}

func (f Founding) toRecord() orgRecord {
	r := orgRecord{OrganizationID: f.ID, Slug: f.Slug, settingsRecord: settingsRecord{
		Name: f.Name, Plan: f.Plan, Active: true, Disclosure: f.Disclosure,
	}}
	if r.Plan == "" {
		r.Plan = DefaultPlan
	}
	if r.Disclosure == 0 {
		r.Disclosure = id.DiscloseRecord
	}
	return r
}
