package org

import (
	"context"
	"errors"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Listed is an organization in the operator's list.
type Listed struct {
	Summary
	Plan   string
	Active bool
	Fault  log.Level // of the ledger

	// Usage does not contain Paced. If it can't be read, it is nil, and Unread is the reason, as a message for clients.
	Usage  *Usage
	Unread string
}

// ListOrganizations returns at most limit organizations of the service with a slug after the given one, in ascending
// order of slug. It includes organizations whose usage or record can't be read, because the operator looks for them
// here.
func (o *Orgs) ListOrganizations(ctx context.Context, after id.Slug, limit int) ([]Listed, error) {
	all := []Listed{}
	for r, err := range records.Scan(ctx, o.records, id.Service, kindSlugClaim, records.After(string(after)), limit) {
		var claim records.Versioned[claimRecord]
		if err == nil {
			claim, err = records.Decode[claimRecord](r)
		}
		if err != nil {
			return nil, errUnreadable("list organizations", err)
		}
		listed, err := o.readListed(ctx, claim.Value.Tenant)
		switch {
		case errors.Is(err, storage.ErrNotFound): // claimed for an organization that was never created
			continue
		case errors.Is(err, storage.ErrCorrupt): // the operator must see that it exists
			listed = Listed{Summary: Summary{Slug: id.Slug(r.Key)}, Unread: "The organization's record is damaged"}
		case err != nil:
			return nil, errUnreadable("list organizations", err)
		}
		if all = append(all, listed); len(all) == limit {
			break
		}
	}
	return all, nil
}

// ListOrganization returns one organization like ListOrganizations does.
func (o *Orgs) ListOrganization(ctx context.Context, t id.Tenant) (Listed, error) {
	listed, err := o.readListed(ctx, t)
	if err != nil {
		return Listed{}, errUnreadable("read organization", err)
	}
	return listed, nil
}

// shownState returns the published state of a ledger. If another node owns it, it returns the latest state that this
// node knows to be published.
func (o *Orgs) shownState(ctx context.Context, t id.Tenant) (*log.State, error) {
	s, err := o.ledgers.State(ctx, t)
	if errors.Is(err, log.ErrNotOwner) {
		return o.ledgers.LastShown(ctx, t)
	}
	return s, err
}

func (o *Orgs) readListed(ctx context.Context, t id.Tenant) (Listed, error) {
	stored, _, err := o.readRecord(ctx, t)
	if err != nil {
		return Listed{}, err
	}
	l := Listed{
		Summary: Summary{ID: stored.OrganizationID, Slug: stored.Slug, Name: stored.Name},
		Plan:    stored.Plan, Active: stored.Active,
	}
	s, err := o.shownState(ctx, t)
	if err == nil {
		l.Usage = new(Usage)
		l.Fault = s.Fault().Level
		*l.Usage, err = o.usageAt(ctx, s)
	}
	if ctx.Err() != nil {
		return Listed{}, ctx.Err()
	}
	if err != nil {
		l.Usage, l.Unread = nil, fault.Of(err).Message
	}
	return l, nil
}
