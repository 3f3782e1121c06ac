package org

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/storage"
)

// Claims in the service's own partition, by slug and by organization id.
const (
	kindSlugClaim storage.Kind = "org_slug"
	kindIDClaim   storage.Kind = "org_id"
)

type claimRecord struct {
	Tenant id.Tenant `json:"tenant"`
}

// Founding is what a new organization is to be.
type Founding struct {
	Tenant     id.Tenant // a fresh random handle
	ID         id.Organization
	Slug       id.Slug
	Name       string
	Plan       string        // "": DefaultPlan
	Disclosure id.Disclosure // 0: record
}

// Check returns fault.Invalid for a founding that can't be. It writes nothing.
func (o *Orgs) Check(f Founding) error {
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

// Found claims the id and the slug of an organization for its handle and
// returns the records that its ledger has to begin with. Until they are written
// the organization does not exist, and another founding may take the claims
// over: then writing them is refused. A founding is not repeated with the same
// handle.
//
// fault.Conflict when an organization has or had the id or the slug.
func (o *Orgs) Found(ctx context.Context, f Founding) ([]storage.Change, error) {
	if err := o.Check(f); err != nil {
		return nil, err
	}
	if err := o.claim(ctx, f.Tenant, kindIDClaim, f.ID.String(), "organization_id is taken"); err != nil {
		return nil, err
	}
	if err := o.claim(ctx, f.Tenant, kindSlugClaim, string(f.Slug), "slug is taken"); err != nil {
		return nil, err
	}
	value, err := json.Marshal(f.record())
	if err != nil {
		return nil, fmt.Errorf("found organization: %w", err)
	}
	return []storage.Change{{Kind: kindOrg, Value: value}}, nil
}

func (f Founding) record() orgRecord {
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

// claimTries bounds how often a claim that others move is looked at again.
const claimTries = 8

// claim makes a name t's. One that was claimed for a founding that did not
// happen is taken over. taken is what the loser is told.
func (o *Orgs) claim(ctx context.Context, t id.Tenant, kind storage.Kind, name, taken string) error {
	value, err := json.Marshal(claimRecord{Tenant: t})
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	for range claimTries {
		version, err := o.releaseClaim(ctx, kind, name, taken)
		if err != nil {
			return err
		}
		err = o.records.Write(ctx, id.Service, []storage.Change{{Kind: kind, Key: name, Value: value, If: version}})
		if err == nil || !errors.Is(err, storage.ErrStale) {
			return unreadableUnlessNil("claim", err)
		}
	}
	return fault.New(fault.Conflict, taken)
}

// releaseClaim returns the version of a claim that may be overwritten, 0 when
// there is none: it makes the handle that held it void. fault.Conflict when an
// organization is behind it.
func (o *Orgs) releaseClaim(ctx context.Context, kind storage.Kind, name, taken string) (uint64, error) {
	r, err := o.records.Get(ctx, id.Service, kind, name)
	if absent(err) {
		return 0, nil
	}
	var held claimRecord
	if err == nil {
		err = json.Unmarshal(r.Value, &held)
	}
	if err != nil {
		return 0, unreadable("read claim", err)
	}
	err = o.records.Write(ctx, held.Tenant, []storage.Change{{Kind: kindOrg, Value: []byte(voidValue)}})
	if err == nil {
		return r.Version, nil
	}
	if !errors.Is(err, storage.ErrStale) {
		return 0, unreadable("void handle", err)
	}
	if _, _, err = o.record(ctx, held.Tenant); err == nil {
		return 0, fault.New(fault.Conflict, taken)
	}
	if absent(err) { // void already
		return r.Version, nil
	}
	return 0, unreadable("read claim", err)
}

func unreadableUnlessNil(step string, err error) error {
	if err == nil {
		return nil
	}
	return unreadable(step, err)
}
