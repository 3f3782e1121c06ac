package member

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// kindSignIn has one record for each member whose sign-in was changed, by account, in the organization's partition.
// It is written in the append that states the change.
const kindSignIn storage.Kind = "member_sign_in"

// signInRecord is the latest change of a member's sign-in that the organization has stated.
type signInRecord struct {
	account.SignInChange
}

func (m *Members) signIns() records.Store[signInRecord] {
	return records.New[signInRecord](m.Records, kindSignIn, "Members can't be read")
}

// StateSignIn states the changes of how a member signs in that are not yet in the organization's log
// (ledger_member_sign_in_changed), and retires the voter keys whose passkeys the member no longer has. It must be
// called before a vote is counted.
func (m *Members) StateSignIn(ctx context.Context, t id.Tenant, who account.ID) error {
	if m.VoterKeys != nil {
		if err := m.VoterKeys.RetireLost(ctx, t, who); err != nil {
			return err
		}
	}
	open, _, err := m.openSignIns(ctx, t, who)
	if err != nil || len(open) == 0 {
		return err
	}
	_, err = m.Events.Append(ctx, t, sysevent.Operator, func(ctx context.Context, _ *log.State) (sysevent.Change, error) {
		open, stored, err := m.openSignIns(ctx, t, who)
		if err != nil || len(open) == 0 {
			return sysevent.Change{}, err
		}
		change := sysevent.Change{KeepConfigVersion: true}
		for _, c := range open {
			s := sysevent.Statement{Kind: sysevent.MemberSignIn, Payload: map[string]any{
				"account_id": who, "change": c.Kind, "by": c.By, "number": c.Number, "changed_at": c.At}}
			if c.By != account.SignInByOperator {
				s.Principal = string(who)
			}
			change.Statements = append(change.Statements, s)
		}
		stored.Value.SignInChange = open[len(open)-1]
		put, err := m.signIns().Put(stored)
		change.Changes = []storage.Change{put}
		return change, err
	})
	return err
}

// openSignIns returns the changes that are not yet stated, oldest first, and the record of the latest stated one. It
// returns none for a person who is not a member, or who has not accepted an offer.
func (m *Members) openSignIns(ctx context.Context, t id.Tenant, who account.ID) (
	open []account.SignInChange, stored records.Versioned[signInRecord], err error) {
	all, err := m.Accounts.SignInChanges(ctx, who)
	if err != nil || len(all) == 0 {
		return nil, stored, err
	}
	membership, err := m.Accounts.StoredMembership(ctx, t, who)
	if fault.Is(err, fault.NotFound) {
		return nil, stored, nil
	}
	if err != nil {
		return nil, stored, err
	}
	if stored, err = m.signIns().Get(ctx, t, string(who)); err != nil {
		return nil, stored, err
	}
	for _, c := range all {
		// A change before the person joined let nobody else into this organization.
		if c.Number > stored.Value.Number && c.At >= membership.Since {
			open = append(open, c)
		}
	}
	if membership.Offered {
		open = nil
	}
	return open, stored, nil
}

// SignInChanged is the latest stated change of how a member signs in.
type SignInChanged struct {
	Account account.ID
	Email   string
	account.SignInChange
}

// SignInsChanged returns the members who may vote now, also as deputies, and whose sign-in changed within the given
// time, with the latest change of each, latest first.
func (m *Members) SignInsChanged(ctx context.Context, t id.Tenant, within time.Duration) ([]SignInChanged, error) {
	since := id.InstantOf(m.Clock().Add(-within))
	represented, err := m.Represented(ctx, t)
	if err != nil {
		return nil, err
	}
	var found []SignInChanged
	for r, err := range m.signIns().Scan(ctx, t, records.Range{}, 0) {
		if err != nil {
			return nil, err
		}
		who := account.ID(r.Key)
		if r.Value.At < since {
			continue
		}
		membership, err := m.Accounts.Membership(ctx, t, who)
		if fault.Is(err, fault.NotFound) || err == nil && !membership.Role.May(account.Vote) && represented[who] == "" {
			continue
		}
		if err != nil {
			return nil, err
		}
		person, err := m.Accounts.ByID(ctx, who)
		if err != nil {
			return nil, err
		}
		found = append(found, SignInChanged{who, person.Email, r.Value.SignInChange})
	}
	slices.SortFunc(found, func(a, b SignInChanged) int {
		if a.At != b.At {
			return int(b.At - a.At)
		}
		return strings.Compare(string(a.Account), string(b.Account))
	})
	return found, nil
}

// Run states the due changes of members' sign-ins every second until ctx ends.
func (m *Members) Run(ctx context.Context, logger *slog.Logger) {
	schedule.Every(ctx, m.Held, m.Sweep, func(err error) { logger.Warn("members: changes of sign-ins not recorded", "err", err) })
}

// closedPause is the time in milliseconds until the next attempt for a log that accepts no events.
const closedPause id.Instant = 600_000

// Sweep states the changes that are due.
func (m *Members) Sweep(ctx context.Context) error {
	now := func() id.Instant { return id.InstantOf(m.Clock()) }
	return m.signInDue.Sweep(ctx, now, func(ctx context.Context, e schedule.Entry) (schedule.Outcome, error) {
		who := account.ID(e.Name)
		err := m.StateSignIn(ctx, e.Tenant, who)
		if err != nil {
			switch fault.Of(err).Code {
			case "frozen", "moved", "read_only", "held", clock.Code: // until an operator acts
				return schedule.Until(now() + closedPause), nil
			}
			if errors.Is(err, log.ErrNotOwner) { // the owner's sweep states it
				return schedule.OrganizationFull(), nil
			}
			return schedule.Keep(), err
		}
		all, err := m.Accounts.SignInChanges(ctx, who)
		since := e.At
		if e.Since != 0 {
			since = e.Since
		}
		if err == nil && slices.ContainsFunc(all, func(c account.SignInChange) bool { return c.At >= since }) {
			return schedule.Done(), nil
		}
		return schedule.Absent(e, now()), err // the change may be written only now
	})
}
