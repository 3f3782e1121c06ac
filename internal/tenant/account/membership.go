package account

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// Membership is the membership of an account in an organization.
type Membership struct {
	ID      string
	Account ID
	Tenant  id.Tenant
	Role    Role
	Since   id.Instant

	// Offered and Suspended memberships have no effect: no session, no vote and no role.
	Offered   bool // and not yet accepted
	Suspended bool
}

// StoredMembership is a membership with the version of its record, or 0 if it is new.
type StoredMembership struct {
	Membership
	version uint64
}

// IsEffective reports whether the membership gives its account the role.
func (m Membership) IsEffective() bool { return !m.Offered && !m.Suspended }

const (
	// kindMembership has one record for each member, by account ID, in the organization's partition.
	kindMembership storage.Kind = "membership"
	// kindPlace has one record for each organization of which an account may be a member, by account ID, "/" and
	// tenant, in the service's own partition.
	kindPlace storage.Kind = "account_org"
)

type membershipRecord struct {
	MembershipID string     `json:"membership_id"`
	Role         Role       `json:"role"`
	Since        id.Instant `json:"since"`
	Offered      bool       `json:"offered,omitzero"` // until the account accepts
	Suspended    bool       `json:"suspended,omitzero"`
}

func (r *membershipRecord) toMembership(t id.Tenant, who ID, version uint64) (StoredMembership, error) {
	if !r.Role.Valid() {
		return StoredMembership{}, errUnreadable("read membership", errors.New("role is not known"))
	}
	return StoredMembership{Membership{
		ID: r.MembershipID, Account: who, Tenant: t, Role: r.Role, Since: r.Since,
		Offered: r.Offered, Suspended: r.Suspended,
	}, version}, nil
}

func membershipKey(who ID, t id.Tenant) string {
	return string(who) + "/" + fmt.Sprintf("%016x", uint64(t))
}

// NewMembership makes an account a member of a new organization. It returns the record for the first write of the
// ledger.
func (a *Accounts) NewMembership(
	ctx context.Context, t id.Tenant, who ID, role Role,
) (storage.Change, Membership, error) {
	return a.newMembership(ctx, t, who, role, false)
}

// NewOffer is like NewMembership for an existing account, which becomes a member only when it accepts (Accept).
func (a *Accounts) NewOffer(ctx context.Context, t id.Tenant, who ID, role Role) (storage.Change, Membership, error) {
	return a.newMembership(ctx, t, who, role, true)
}

func (a *Accounts) newMembership(
	ctx context.Context, t id.Tenant, who ID, role Role, offered bool,
) (storage.Change, Membership, error) {
	m := Membership{
		ID:      "mem_" + strings.ToLower(rand.Text()),
		Account: who,
		Tenant:  t,
		Role:    role,
		Since:   id.InstantOf(a.clock()),
		Offered: offered,
	}
	change, err := StoredMembership{Membership: m}.Put()
	if err != nil {
		return storage.Change{}, Membership{}, err
	}
	place := storage.Change{Kind: kindPlace, Key: membershipKey(who, t), Value: []byte("{}"), If: storage.AnyVersion}
	if err := a.records.Write(ctx, id.Service, []storage.Change{place}); err != nil {
		return storage.Change{}, Membership{}, errUnreadable("make membership", err)
	}
	return change, m, nil
}

// Put returns the change that writes the membership if its record has not changed since it was read.
func (m StoredMembership) Put() (storage.Change, error) {
	value, err := json.Marshal(membershipRecord{
		MembershipID: m.ID, Role: m.Role, Since: m.Since, Offered: m.Offered, Suspended: m.Suspended,
	})
	if err != nil {
		return storage.Change{}, fmt.Errorf("write membership: %w", err)
	}
	return storage.Change{Kind: kindMembership, Key: string(m.Account), Value: value, If: m.version}, nil
}

// Remove returns the change that removes the membership, on the same condition.
func (m StoredMembership) Remove() storage.Change {
	return storage.Change{Kind: kindMembership, Key: string(m.Account), If: m.version}
}

// Membership returns the membership of an account in an organization. It returns fault.NotFound if it has none, or if
// the membership is suspended or not yet accepted.
func (a *Accounts) Membership(ctx context.Context, t id.Tenant, who ID) (Membership, error) {
	m, err := a.readMembership(ctx, t, who)
	if err == nil && !m.IsEffective() {
		return Membership{}, fault.New(fault.NotFound, "Not found")
	}
	return m.Membership, err
}

// readMembership is like Membership, but also returns memberships without effect.
func (a *Accounts) readMembership(ctx context.Context, t id.Tenant, who ID) (StoredMembership, error) {
	var r membershipRecord
	version, err := a.readRecord(ctx, t, kindMembership, string(who), &r)
	if err != nil {
		return StoredMembership{}, err
	}
	return r.toMembership(t, who, version)
}

// Members returns all memberships of an organization, including those without effect, oldest first.
func (a *Accounts) Members(ctx context.Context, t id.Tenant) ([]StoredMembership, error) {
	var found []StoredMembership
	for r, err := range records.Scan(ctx, a.records, t, kindMembership, records.Range{}, 0) {
		if err != nil {
			return nil, errUnreadable("list members", err)
		}
		v, err := records.Decode[membershipRecord](r)
		if err != nil {
			return nil, errUnreadable("list members", err)
		}
		m, err := v.Value.toMembership(t, ID(r.Key), r.Version)
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	slices.SortFunc(found, func(a, b StoredMembership) int { return compareAge(a.Membership, b.Membership) })
	return found, nil
}

func compareAge(a, b Membership) int {
	return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID))
}

// Memberships returns all effective memberships of an account, oldest first.
func (a *Accounts) Memberships(ctx context.Context, who ID) ([]Membership, error) {
	all, err := a.Places(ctx, who)
	return slices.DeleteFunc(all, func(m Membership) bool { return !m.IsEffective() }), err
}

// Places returns all memberships of an account, oldest first, followed by offers that are not yet accepted, and by
// suspended memberships.
func (a *Accounts) Places(ctx context.Context, who ID) ([]Membership, error) {
	found, _, err := a.scanPlaces(ctx, who)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b Membership) int { return cmp.Or(a.rank()-b.rank(), compareAge(a, b)) })
	return found, nil
}

// scanPlaces returns all memberships of an account in no particular order. gone reports whether the account's list
// also contains organizations that it left or that were never created.
func (a *Accounts) scanPlaces(ctx context.Context, who ID) (found []Membership, gone bool, err error) {
	keys := records.Range{Begin: membershipKey(who, 0), End: string(who) + "0"} // "0" follows "/"
	for r, err := range records.Scan(ctx, a.records, id.Service, kindPlace, keys, 0) {
		if err != nil {
			return nil, false, errUnreadable("list memberships", err)
		}
		m, err := a.findMembership(ctx, who, r.Key)
		if fault.Is(err, fault.NotFound) {
			gone = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		found = append(found, m)
	}
	return found, gone, nil
}

// rank orders memberships by their effect: 0 for effective ones.
func (m Membership) rank() int {
	switch {
	case m.Suspended:
		return 2
	case m.Offered:
		return 1
	}
	return 0
}

// findMembership reads the membership for an entry of the account's list.
func (a *Accounts) findMembership(ctx context.Context, who ID, name string) (Membership, error) {
	t, err := strconv.ParseUint(strings.TrimPrefix(name, string(who)+"/"), 16, 64)
	if err != nil {
		return Membership{}, errUnreadable("list memberships", err)
	}
	m, err := a.readMembership(ctx, id.Tenant(t), who)
	return m.Membership, err
}
