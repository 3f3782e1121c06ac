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

// Role says which calls a member may make.
type Role string

const (
	Owner    Role = "owner"
	Admin    Role = "admin"
	Approver Role = "approver"
	Member   Role = "member"
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains([]Role{Owner, Admin, Approver, Member}, r) }

// Membership is an account's place in an organization.
type Membership struct {
	ID      string
	Account ID
	Tenant  id.Tenant
	Role    Role
	Since   id.Instant
	Offered bool // and not accepted: it is of no effect yet
}

const (
	// kindMembership has one record for each member, by account id, in the
	// organization's partition.
	kindMembership storage.Kind = "membership"
	// kindPlace has one for each organization that an account may be a member
	// of, by account id, "/" and tenant, in the service's own partition.
	kindPlace storage.Kind = "account_org"
)

type membershipRecord struct {
	MembershipID string     `json:"membership_id"`
	Role         Role       `json:"role"`
	Since        id.Instant `json:"since"`
	Offered      bool       `json:"offered,omitzero"` // until the account accepts
}

func membershipKey(who ID, t id.Tenant) string {
	return string(who) + "/" + fmt.Sprintf("%016x", uint64(t))
}

// NewMembership makes an account a member of an organization that is being
// made: it returns the record that the ledger begins with.
func (a *Accounts) NewMembership(
	ctx context.Context, t id.Tenant, who ID, role Role,
) (storage.Change, Membership, error) {
	return a.newMembership(ctx, t, who, role, false)
}

// NewOffer is NewMembership for an account that was there before: it is a member only
// when it accepts (Accept).
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
	value, err := json.Marshal(membershipRecord{MembershipID: m.ID, Role: m.Role, Since: m.Since, Offered: m.Offered})
	if err != nil {
		return storage.Change{}, Membership{}, fmt.Errorf("make membership: %w", err)
	}
	place := storage.Change{Kind: kindPlace, Key: membershipKey(who, t), Value: []byte("{}"), If: storage.AnyVersion}
	if err := a.records.Write(ctx, id.Service, []storage.Change{place}); err != nil {
		return storage.Change{}, Membership{}, errUnreadable("make membership", err)
	}
	return storage.Change{Kind: kindMembership, Key: string(who), Value: value}, m, nil
}

// Membership returns the place of an account in an organization; fault.NotFound
// when it has none, or one that was offered and is not accepted.
func (a *Accounts) Membership(ctx context.Context, t id.Tenant, who ID) (Membership, error) {
	m, _, err := a.readMembership(ctx, t, who)
	if err == nil && m.Offered {
		return Membership{}, fault.New(fault.NotFound, "Not found")
	}
	return m, err
}

// readMembership returns also an offer, and the version of the record.
func (a *Accounts) readMembership(ctx context.Context, t id.Tenant, who ID) (Membership, uint64, error) {
	var r membershipRecord
	version, err := a.readRecord(ctx, t, kindMembership, string(who), &r)
	if err != nil {
		return Membership{}, 0, err
	}
	if !r.Role.Valid() {
		return Membership{}, 0, errUnreadable("read membership", errors.New("role is not known"))
	}
	return Membership{
		ID:      r.MembershipID,
		Account: who,
		Tenant:  t,
		Role:    r.Role,
		Since:   r.Since,
		Offered: r.Offered,
	}, version, nil
}

// Memberships returns all places of an account, oldest first.
func (a *Accounts) Memberships(ctx context.Context, who ID) ([]Membership, error) {
	all, err := a.Places(ctx, who)
	return slices.DeleteFunc(all, func(m Membership) bool { return m.Offered }), err
}

// Places returns all places of an account, oldest first, and behind them those that were
// offered to it and are not accepted.
func (a *Accounts) Places(ctx context.Context, who ID) ([]Membership, error) {
	var found []Membership
	keys := records.Range{Begin: membershipKey(who, 0), End: string(who) + "0"} // "0" follows "/"
	for r, err := range records.Scan(ctx, a.records, id.Service, kindPlace, keys, 0) {
		if err != nil {
			return nil, errUnreadable("list memberships", err)
		}
		m, err := a.findMembership(ctx, who, r.Key)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	slices.SortFunc(found, func(a, b Membership) int {
		switch {
		case a.Offered && !b.Offered:
			return 1
		case !a.Offered && b.Offered:
			return -1
		}
		return cmp.Or(cmp.Compare(a.Since, b.Since), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// findMembership reads the membership that the name of a place stands for.
func (a *Accounts) findMembership(ctx context.Context, who ID, name string) (Membership, error) {
	t, err := strconv.ParseUint(strings.TrimPrefix(name, string(who)+"/"), 16, 64)
	if err != nil {
		return Membership{}, errUnreadable("list memberships", err)
	}
	m, _, err := a.readMembership(ctx, id.Tenant(t), who)
	return m, err
}
