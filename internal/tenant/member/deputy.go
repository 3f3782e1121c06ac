package member

import (
	"context"
	"fmt"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// Bounds of the period of a deputy.
const (
	maxDeputyTime  = 90 * 24 * time.Hour
	maxDeputyAhead = 366 * 24 * time.Hour // until the period begins
)

// kindDeputy has one record for each member who named a deputy, by the account of that member, in the organization's
// partition. It is deleted when the deputy is ended, and some time after the period has ended.
const kindDeputy storage.Kind = "deputy"

type deputyRecord struct {
	Deputy account.ID `json:"deputy"`
	From   id.Instant `json:"from"`
	Until  id.Instant `json:"until"`

	NamedAt id.Instant `json:"named_at"`
}

// Deputyship is the period [From, Until) in which a deputy votes in place of a member, and both have one vote together.
type Deputyship struct {
	Person account.ID // who is represented
	Deputy account.ID
	From   id.Instant
	Until  id.Instant
	State  DeputyState // when it was read
}

// DeputyState says whether a deputyship has an effect.
type DeputyState string

// The states. Only an active deputyship has an effect.
const (
	DeputyActive    DeputyState = "active"
	DeputyLater     DeputyState = "later"      // the period has not begun
	DeputySuspended DeputyState = "suspended"  // one of the two is
	DeputyRole      DeputyState = "role"       // the deputy's own role votes, or that of the represented member does not
	DeputyTakenOver DeputyState = "taken_over" // a previous holder of the represented account named the deputy
)

type storedDeputy = records.Versioned[deputyRecord]

func (m *Members) deputies() records.Store[deputyRecord] {
	return records.New[deputyRecord](m.Records, kindDeputy, "Deputies can't be read")
}

func toDeputyship(v storedDeputy, state DeputyState) Deputyship {
	return Deputyship{Person: account.ID(v.Key), Deputy: v.Value.Deputy, From: v.Value.From, Until: v.Value.Until, State: state}
}

// readDeputies returns the records of an organization, the expired ones separately.
func (m *Members) readDeputies(ctx context.Context, t id.Tenant) (valid, expired []storedDeputy, err error) {
	now := id.InstantOf(m.Clock())
	for v, err := range m.deputies().Scan(ctx, t, records.Range{}, 0) {
		if err != nil {
			return nil, nil, err
		}
		if v.Value.Until <= now {
			expired = append(expired, v)
		} else {
			valid = append(valid, v)
		}
	}
	return valid, expired, nil
}

// Deputies returns the deputyships of an organization whose period has not ended, in the order of the represented
// accounts, also those without effect.
func (m *Members) Deputies(ctx context.Context, t id.Tenant) (found []Deputyship, err error) {
	valid, _, err := m.readDeputies(ctx, t)
	if err != nil || len(valid) == 0 {
		return nil, err
	}
	all, err := m.Accounts.Members(ctx, t)
	if err != nil {
		return nil, err
	}
	members := make(map[account.ID]account.Membership, len(all))
	for i := range all {
		members[all[i].Account] = all[i].Membership
	}
	for _, v := range valid {
		person, is := members[account.ID(v.Key)]
		deputy, isToo := members[v.Value.Deputy]
		if !is || !isToo {
			continue
		}
		state, err := m.deputyState(ctx, v, person, deputy)
		if err != nil {
			return nil, err
		}
		found = append(found, toDeputyship(v, state))
	}
	return found, nil
}

// deputyState decides whether a deputyship has an effect now. A deputy whose own role votes has none: otherwise a member
// could name a strict reviewer, and both would have one vote together.
func (m *Members) deputyState(ctx context.Context, v storedDeputy, person, deputy account.Membership) (DeputyState, error) {
	takenOver, err := m.Accounts.TakenOverAt(ctx, person.Account)
	switch {
	case err != nil:
		return "", err
	case takenOver != 0 && v.Value.NamedAt <= takenOver:
		return DeputyTakenOver, nil
	case !person.IsEffective() || !deputy.IsEffective():
		return DeputySuspended, nil
	case !person.Role.May(account.Vote) || deputy.Role.May(account.Vote):
		return DeputyRole, nil
	case id.InstantOf(m.Clock()) < v.Value.From:
		return DeputyLater, nil
	}
	return DeputyActive, nil
}

// Represented returns the members in whose place others vote now, by the accounts of those deputies.
func (m *Members) Represented(ctx context.Context, t id.Tenant) (map[account.ID]account.ID, error) {
	all, err := m.Deputies(ctx, t)
	of := make(map[account.ID]account.ID, len(all))
	for _, d := range all {
		if d.State == DeputyActive {
			of[d.Deputy] = d.Person
		}
	}
	return of, err
}

// Represents returns the member in whose place a member votes now, or "".
func (m *Members) Represents(ctx context.Context, t id.Tenant, who account.ID) (account.ID, error) {
	of, err := m.Represented(ctx, t)
	return of[who], err
}

// checkDeputy returns an error unless a member may vote and can name another member, whose role does not vote.
func (r roster) checkDeputy(person account.ID, deputy account.StoredMembership, isMember bool) error {
	if err := r.checkRight(person, account.Vote); err != nil {
		return err
	}
	switch {
	case !isMember || !deputy.IsEffective():
		return fault.New(fault.Invalid, "The deputy must be a member of the organization who is not suspended")
	case person == deputy.Account:
		return fault.New(fault.Invalid, "You cannot be your own deputy")
	case deputy.Role.May(account.Vote):
		return errMember("deputy_role", "The role of this member votes: a deputy is a member whose own role does not vote")
	}
	return nil
}

// NewDeputy is the wish for a deputy.
type NewDeputy struct {
	Membership string     // of the deputy
	From       id.Instant // 0 for now
	Until      id.Instant
}

// NameDeputy gives the calling member a deputy in place of an earlier one, states it (ledger_deputy_named) and mails the
// deputy. It returns fault.Invalid for a period or a deputy that is not possible, fault.Forbidden if the caller may not
// vote, fault.Unauthorized with code step_up, fault.Conflict with code deputy_role if the deputy's own role votes, or with
// code deputy_taken if the deputy represents another member at that time, and fault.RateLimited if changes come too fast.
//
// The caller must make sure that the votes of the calling member count now: otherwise a deputy could give them.
func (m *Members) NameDeputy(ctx context.Context, t id.Tenant, by *account.Session, wanted NewDeputy) (Deputyship, error) {
	var named Deputyship
	err := m.appendChange(ctx, t, by.Account, func(ctx context.Context, r roster) (sysevent.Change, error) {
		now := id.InstantOf(m.Clock())
		from := max(wanted.From, now)
		if err := checkPeriod(now, from, wanted.Until); err != nil {
			return sysevent.Change{}, err
		}
		of, found := r.find(func(s account.Membership) bool { return s.ID == wanted.Membership })
		if err := r.checkDeputy(by.Account, of, found); err != nil {
			return sysevent.Change{}, err
		}
		if err := by.CheckFactor(); err != nil {
			return sysevent.Change{}, err
		}
		valid, expired, err := m.readDeputies(ctx, t)
		if err != nil {
			return sysevent.Change{}, err
		}
		stored := storedDeputy{Key: string(by.Account)}
		for _, v := range valid {
			if v.Key == stored.Key {
				stored = v
			} else if v.Value.Deputy == of.Account && v.Value.From < wanted.Until && from < v.Value.Until {
				return sysevent.Change{}, errMember("deputy_taken", "This member is the deputy of another member at that time")
			}
		}
		paced, err := m.Quota.CountStatement(ctx, t)
		if err != nil {
			return sysevent.Change{}, err
		}
		for i, v := range expired {
			if v.Key == stored.Key {
				stored = v
			} else if i < sweep {
				paced = append(paced, removeDeputy(v))
			}
		}
		stored.Value = deputyRecord{Deputy: of.Account, From: from, Until: wanted.Until, NamedAt: now}
		named = toDeputyship(stored, DeputyLater)
		if from == now {
			named.State = DeputyActive
		}
		put, err := m.deputies().Put(stored)
		changes := append(paced, put)
		if err == nil && m.Mail != nil {
			var written []storage.Change
			written, err = m.Mail.DeputyMail(ctx, t, named)
			changes = append(changes, written...)
		}
		return sysevent.Change{Changes: changes, Statements: []sysevent.Statement{
			{Kind: sysevent.DeputyNamed, Payload: map[string]any{"account_id": named.Person, "deputy": named.Deputy,
				"from": named.From, "until": named.Until}}}}, err
	})
	return named, err
}

func checkPeriod(now, from, until id.Instant) error {
	length := time.Duration(until-from) * time.Millisecond
	switch {
	case until <= from:
		return fault.New(fault.Invalid, "until must be in the future and after from")
	case length > maxDeputyTime:
		return fault.New(fault.Invalid, fmt.Sprintf("until must be at most %d days after from", maxDeputyTime/(24*time.Hour)))
	case time.Duration(from-now)*time.Millisecond > maxDeputyAhead:
		return fault.New(fault.Invalid, fmt.Sprintf("from must be within %d days", maxDeputyAhead/(24*time.Hour)))
	}
	return nil
}

func removeDeputy(v storedDeputy) storage.Change {
	return storage.Change{Kind: kindDeputy, Key: v.Key, If: v.Version}
}

// EndDeputy ends the deputy of a member and states it (ledger_deputy_ended). The two and whoever may change members may
// do it, also before the period begins. It returns fault.NotFound for an unknown membership or without a deputy, and
// fault.Forbidden.
func (m *Members) EndDeputy(ctx context.Context, t id.Tenant, by *account.Session, membership string) error {
	return m.appendChange(ctx, t, by.Account, func(ctx context.Context, r roster) (sysevent.Change, error) {
		of, found := r.find(func(s account.Membership) bool { return s.ID == membership })
		var refused error
		change, err := m.endDeputies(ctx, t, func(d *Deputyship) bool {
			ends := found && d.Person == of.Account
			if ends && d.Person != by.Account && d.Deputy != by.Account {
				refused = r.checkRight(by.Account, account.ChangeMembers)
			}
			return ends
		})
		if refused != nil {
			return sysevent.Change{}, refused
		}
		if err == nil && len(change.Statements) == 0 {
			err = fault.New(fault.NotFound, "Not found")
		}
		return change, err
	})
}

// endDeputies returns the change that ends some deputyships.
func (m *Members) endDeputies(ctx context.Context, t id.Tenant, ends func(*Deputyship) bool) (sysevent.Change, error) {
	valid, _, err := m.readDeputies(ctx, t)
	var change sysevent.Change
	for _, v := range valid {
		if d := toDeputyship(v, ""); ends(&d) {
			change.Changes = append(change.Changes, removeDeputy(v))
			change.Statements = append(change.Statements, sysevent.Statement{Kind: sysevent.DeputyEnded,
				Payload: map[string]any{"account_id": d.Person, "deputy": d.Deputy}})
		}
	}
	return change, err
}

// endDeputiesOf returns the change that ends the deputyships that a change of a membership makes impossible. after is
// nil if the membership ends.
func (m *Members) endDeputiesOf(ctx context.Context, before account.StoredMembership, after *account.StoredMembership) (sysevent.Change, error) {
	return m.endDeputies(ctx, before.Tenant, func(d *Deputyship) bool {
		return after == nil && d.Deputy == before.Account ||
			d.Person == before.Account && (after == nil || !after.Role.May(account.Vote))
	})
}
