package org

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Claims in the service's own partition, by slug and by organization ID.
const (
	kindSlugClaim storage.Kind = "org_slug"
	kindIDClaim   storage.Kind = "org_id"
)

type claimRecord struct {
	Tenant id.Tenant `json:"tenant"`
}

// claimTries bounds how often claims are read again because others change them.
const claimTries = 16

// claimName claims both names of a founding for its handle, in one write. Names that were claimed for a founding that
// has not happened (yet) are taken over: its handle is made void first. A handle has its claims before it can be made
// void, and makes no other handle void after that, so of several concurrent foundings one remains.
func (o *Orgs) claimName(ctx context.Context, f Founding) error {
	value, err := json.Marshal(claimRecord{Tenant: f.Tenant})
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	for range claimTries {
		changes := []storage.Change{
			{Kind: kindIDClaim, Key: f.ID.String(), Value: value},
			{Kind: kindSlugClaim, Key: string(f.Slug), Value: value},
		}
		if err := o.takeOverClaim(ctx, changes); err != nil {
			return err
		}
		err := o.records.Write(ctx, id.Service, changes)
		if err == nil {
			return nil
		}
		if !errors.Is(err, storage.ErrStale) {
			return errUnreadable("claim", err)
		}
	}
	return &fault.Error{
		Kind:    fault.Overloaded,
		Code:    "overloaded",
		Message: "Too many calls for the same names at once",
	}
}

// takeOverClaim sets the current version of each claim and makes the handles that hold them void. It returns
// fault.Conflict if one of them belongs to an organization. Then no handle was made void, unless the organization was
// created in the meantime.
func (o *Orgs) takeOverClaim(ctx context.Context, claims []storage.Change) error {
	var holders []holder
	for i := range claims {
		h, err := o.readHolder(ctx, claims[i].Kind, claims[i].Key)
		if err != nil {
			return err
		}
		claims[i].If = h.version
		if h.version != 0 {
			holders = append(holders, h)
		}
	}
	for _, check := range []func(context.Context, id.Tenant) (bool, error){o.organizationExists, o.outlivesClaim} {
		for _, h := range holders {
			exists, err := check(ctx, h.tenant)
			if err != nil {
				return err
			}
			if exists {
				return errNameTaken(h.kind)
			}
		}
	}
	return nil
}

// holder is the handle that holds a claim. If version is 0, there is no claim.
type holder struct {
	kind    storage.Kind
	tenant  id.Tenant
	version uint64
}

func (o *Orgs) readHolder(ctx context.Context, kind storage.Kind, name string) (holder, error) {
	r, err := o.records.Get(ctx, id.Service, kind, name)
	if isAbsent(err) {
		return holder{}, nil
	}
	var stored claimRecord
	if err == nil {
		err = json.Unmarshal(r.Value, &stored)
	}
	if err != nil {
		return holder{}, errUnreadable("read claim", err)
	}
	return holder{kind: kind, tenant: stored.Tenant, version: r.Version}, nil
}

// organizationExists reports whether a handle belongs to an organization.
func (o *Orgs) organizationExists(ctx context.Context, t id.Tenant) (bool, error) {
	_, _, err := o.readRecord(ctx, t)
	if isAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, errUnreadable("read claim", err)
	}
	return true, nil
}

// outlivesClaim makes a handle void, unless it belongs to an organization. It reports whether it does.
func (o *Orgs) outlivesClaim(ctx context.Context, t id.Tenant) (bool, error) {
	err := o.records.Write(ctx, t, []storage.Change{{Kind: kindOrg, Value: []byte(voidValue)}})
	if err == nil {
		return false, nil
	}
	if errors.Is(err, storage.ErrStale) {
		return o.organizationExists(ctx, t)
	}
	return false, errUnreadable("void handle", err)
}

func errNameTaken(kind storage.Kind) error {
	if kind == kindSlugClaim {
		return fault.New(fault.Conflict, "slug is taken")
	}
	return fault.New(fault.Conflict, "organization_id is taken")
}
