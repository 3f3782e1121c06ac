// Package member manages who belongs to an organization: roles, suspension, removal and invitations. It hides which
// records of accounts, invitations and voter keys a change has to touch.
//
// Invariants:
//
//   - Each change is committed in one append with the service's statement about it. The statements contain account
//     IDs and never addresses, because a ledger is never erased.
//   - The rights of the acting member are read in that append, and each change increments the config version of the
//     organization: of two conflicting changes, one is rejected.
//   - An organization always has one owner who is neither suspended nor removed. Only an owner can make, change or
//     remove owners, and must have proved a factor recently.
//   - The token of an invitation is stored as a hash, compared in constant time and shown once. It is valid for seven
//     days and one acceptance, by an account with the invited address.
//   - An invitation becomes invalid if the member who sent it could no longer send it.
//   - A change of how a member signs in that the member did not prove (account.SignInChange) is stated in each
//     organization of the member, even after a crash, and before a vote of the member is counted.
//   - An organization has at most 1,000 members and open invitations together.
//   - A member who may vote has at most one deputy, for at most 90 days, and a deputy represents one member at a time. It
//     ends with its time, with the membership of either, and with the right of the represented member to vote. It has
//     no effect while one of the two is suspended or the deputy's own role votes, and after the account of the
//     represented member was taken over (Represented).
package member

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/quota"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/tenant/voterkey"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// maxMembers is the maximum number of members and open invitations of an organization.
const maxMembers = 1000

// Options configure New. All fields except Mail, VoterKeys, SlackLinks and Held are required.
type Options struct {
	Records  storage.RecordStore
	Events   *sysevent.Appender
	Accounts *account.Accounts
	Quota    *quota.Quota // limits the rate of changes
	Clock    func() time.Time
	Mail     Mail // if nil, the inviter gets the link, and deputies no mail

	VoterKeys  *voterkey.Keys   // may be nil
	SlackLinks *slacklink.Links // may be nil

	Held func() error // returns an error while Run must record nothing; nil: never
}

// Members manages the members of all organizations. Its methods may be called concurrently.
type Members struct {
	Options
	invitations records.Store[invitationRecord]
	signInDue   schedule.Index
}

// New returns the members of a store.
func New(o Options) *Members {
	return &Members{Options: o, signInDue: schedule.Index{Records: o.Records, Kind: account.KindSignInDue},
		invitations: records.New[invitationRecord](o.Records, kindInvitation, "Invitations can't be read")}
}

// Listed is a membership with the address and the name of its account.
type Listed struct {
	account.Membership
	Email       string
	EmailProved bool
	DisplayName string
}

// List returns at most limit memberships of an organization, oldest first, after the given one. It returns
// fault.Invalid if that one is not in the list.
func (m *Members) List(ctx context.Context, t id.Tenant, after string, limit int) ([]Listed, error) {
	all, err := m.Accounts.Members(ctx, t)
	if err != nil {
		return nil, err
	}
	begin, err := findBegin(all, after, func(s *account.StoredMembership) string { return s.ID })
	if err != nil {
		return nil, err
	}
	found := make([]Listed, 0, min(limit, len(all)-begin))
	for _, s := range all[begin:min(len(all), begin+limit)] {
		one, err := m.withAccount(ctx, s.Membership)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// findBegin returns the index after the entry after, or 0 if after is "". If the entry is not in the list, it returns
// fault.Invalid, because starting at the first entry would repeat the list endlessly.
func findBegin[E any](list []E, after string, name func(*E) string) (int, error) {
	if after == "" {
		return 0, nil
	}
	for i := range list {
		if name(&list[i]) == after {
			return i + 1, nil
		}
	}
	return 0, fault.New(fault.Invalid, "after is no longer in the list: start again without it")
}

func (m *Members) withAccount(ctx context.Context, s account.Membership) (Listed, error) {
	who, err := m.Accounts.ByID(ctx, s.Account)
	return Listed{s, who.Email, who.Proof != account.Unproved, who.DisplayName}, err
}

// roster contains the members of an organization as of one append.
type roster []account.StoredMembership

func (r roster) find(matches func(account.Membership) bool) (account.StoredMembership, bool) {
	at := slices.IndexFunc(r, func(s account.StoredMembership) bool { return matches(s.Membership) })
	if at < 0 {
		return account.StoredMembership{}, false
	}
	return r[at], true
}

func (r roster) findAccount(who account.ID) (account.StoredMembership, bool) {
	return r.find(func(s account.Membership) bool { return s.Account == who })
}

// checkActor returns an error if a person is not a member with a permission. Changes of an owner also require an
// owner with a recently proved factor.
func (r roster) checkActor(by *account.Session, p account.Permission, touched ...account.Role) error {
	if err := r.checkRight(by.Account, p, touched...); err != nil {
		return err
	}
	if slices.Contains(touched, account.Owner) && account.Own.NeedsFactor() {
		return by.CheckFactor()
	}
	return nil
}

func (r roster) checkRight(by account.ID, p account.Permission, touched ...account.Role) error {
	actor, isMember := r.findAccount(by)
	if !isMember || !actor.IsEffective() || !actor.Role.May(p) {
		return fault.New(fault.Forbidden, "Your role does not allow this")
	}
	if slices.Contains(touched, account.Owner) && !actor.Role.May(account.Own) {
		return fault.New(fault.Forbidden, "Only an owner may appoint, change or remove an owner")
	}
	return nil
}

// checkRemainingOwner returns an error if no effective owner would remain after a change. after is the changed
// membership, or nil if it is removed.
func (r roster) checkRemainingOwner(before account.Membership, after *account.Membership) error {
	isOwner := func(s account.Membership) bool { return s.Role == account.Owner && s.IsEffective() }
	if !isOwner(before) || after != nil && isOwner(*after) {
		return nil
	}
	_, other := r.find(func(s account.Membership) bool { return isOwner(s) && s.ID != before.ID })
	if other {
		return nil
	}
	return &fault.Error{Kind: fault.Conflict, Code: "last_owner",
		Message: "The organization needs an owner: make another member one first"}
}

// Change is a change of a membership. Nil members remain unchanged.
type Change struct {
	Role      *account.Role
	Suspended *bool
}

// Change changes the role of a membership, or suspends or resumes it, and states the change (ledger_member_changed).
// If nothing changes, it states nothing. It returns fault.NotFound for an unknown membership, fault.Forbidden without
// the required permission, fault.Unauthorized with code step_up, fault.Conflict with code last_owner, and
// fault.RateLimited if changes come too fast. A suspension is never rate limited.
func (m *Members) Change(
	ctx context.Context, t id.Tenant, by *account.Session, membership string, c Change,
) (Listed, error) {
	if c.Role != nil && !c.Role.Valid() {
		return Listed{}, errUnknownRole()
	}
	var changed account.Membership
	err := m.appendChange(ctx, t, by.Account, func(ctx context.Context, r roster) (sysevent.Change, error) {
		before, found := r.find(func(s account.Membership) bool { return s.ID == membership })
		if !found {
			return sysevent.Change{}, fault.New(fault.NotFound, "Not found")
		}
		after := before
		setIfGiven(&after.Role, c.Role)
		setIfGiven(&after.Suspended, c.Suspended)
		changed = after.Membership
		if err := r.checkActor(by, account.ChangeMembers, before.Role, after.Role); err != nil {
			return sysevent.Change{}, err
		}
		if after == before {
			return sysevent.Change{}, nil
		}
		if err := r.checkRemainingOwner(before.Membership, &changed); err != nil {
			return sysevent.Change{}, err
		}
		return m.stateChange(ctx, before, after)
	})
	if err != nil {
		return Listed{}, err
	}
	return m.withAccount(ctx, changed)
}

func setIfGiven[T any](value, to *T) {
	if to != nil {
		*value = *to
	}
}

func errUnknownRole() error {
	return fault.New(fault.Invalid,
		"role must be one of owner, admin, policy_editor, approver, auditor and member")
}

func (m *Members) stateChange(ctx context.Context, before, after account.StoredMembership) (sysevent.Change, error) {
	record, err := after.Put()
	if err != nil {
		return sysevent.Change{}, err
	}
	changes := []storage.Change{record}
	if onlySuspends := after.Suspended && after.Role == before.Role; !onlySuspends {
		paced, err := m.Quota.CountStatement(ctx, after.Tenant)
		if err != nil {
			return sysevent.Change{}, err
		}
		changes = append(changes, paced...)
	}
	ended, err := m.endDeputiesOf(ctx, before, &after)
	return sysevent.Change{Changes: append(changes, ended.Changes...), Statements: append([]sysevent.Statement{{
		Kind: sysevent.MemberChanged, Payload: map[string]any{
			"membership_id": after.ID, "account_id": after.Account,
			"role": after.Role, "suspended": after.Suspended,
			"role_before": before.Role, "suspended_before": before.Suspended,
		}}}, ended.Statements...)}, err
}

// Remove removes a membership and states it (ledger_member_removed). A member may remove their own membership. It
// returns the errors of Change.
func (m *Members) Remove(ctx context.Context, t id.Tenant, by *account.Session, membership string) error {
	return m.appendChange(ctx, t, by.Account, func(ctx context.Context, r roster) (sysevent.Change, error) {
		before, found := r.find(func(s account.Membership) bool { return s.ID == membership })
		if !found {
			return sysevent.Change{}, fault.New(fault.NotFound, "Not found")
		}
		permission := account.ChangeMembers
		if before.Account == by.Account {
			permission = account.Leave
		}
		if err := r.checkActor(by, permission, before.Role); err != nil {
			return sysevent.Change{}, err
		}
		if err := r.checkRemainingOwner(before.Membership, nil); err != nil {
			return sysevent.Change{}, err
		}
		change := sysevent.Change{Changes: []storage.Change{before.Remove()}, Statements: []sysevent.Statement{{
			Kind: sysevent.MemberRemoved, Payload: map[string]any{
				"membership_id": before.ID, "account_id": before.Account, "role": before.Role,
			}}}}
		add := func(ended sysevent.Change) {
			change.Statements = append(change.Statements, ended.Statements...)
			change.Changes = append(change.Changes, ended.Changes...)
		}
		ended, err := m.endDeputiesOf(ctx, before, nil)
		add(ended)
		if err == nil && m.VoterKeys != nil {
			ended, err = m.VoterKeys.EndMembership(ctx, t, before.Account)
			add(ended)
		}
		if err == nil && m.SlackLinks != nil {
			ended, err = m.SlackLinks.EndMembership(ctx, t, before.Account)
			add(ended)
		}
		return change, err
	})
}

// appendChange appends the change that prepare returns for the current members.
func (m *Members) appendChange(
	ctx context.Context, t id.Tenant, by account.ID,
	prepare func(context.Context, roster) (sysevent.Change, error),
) error {
	_, err := m.Events.Append(ctx, t, string(by), func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		all, err := m.Accounts.Members(ctx, t)
		if err != nil {
			return sysevent.Change{}, fmt.Errorf("change members: %w", err)
		}
		return prepare(ctx, all)
	})
	return err
}
