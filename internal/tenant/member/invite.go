package member

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Mail sends mails to invited people and deputies.
type Mail interface {
	// InvitationMail returns the changes that send a mail with a token when they are written, or nil if the service
	// sends no mail. cause identifies the request, whose write may be prepared several times. It returns
	// fault.RateLimited if the address or the organization has had too many mails.
	InvitationMail(ctx context.Context, i Invitation, token, cause string) ([]storage.Change, error)
	// DeputyMail returns the changes that send a mail to the deputy of a new deputyship, or nil if the service sends no
	// mail.
	DeputyMail(ctx context.Context, t id.Tenant, d Deputyship) ([]storage.Change, error)
}

// Sent is an invitation with its new token. If the token was mailed, Token is "", because an inviter with the token
// could accept on behalf of the address.
type Sent struct {
	Invitation
	Token  string
	Mailed bool
}

// Invite invites an address and states it (ledger_invitation_created). It returns fault.Invalid for a malformed
// address or role, fault.Forbidden without the required permission, fault.Conflict if the address is already invited
// (code invited) or a member (code member) or the organization is full (code member_limit), and fault.RateLimited if
// changes come too fast or the address or organization has had too many mails.
func (m *Members) Invite(
	ctx context.Context, t id.Tenant, by *account.Session, email string, role account.Role,
) (Sent, error) {
	email, err := account.ParseEmail(email)
	if err != nil {
		return Sent{}, err
	}
	if !role.Valid() {
		return Sent{}, errUnknownRole()
	}
	now := id.InstantOf(m.Clock())
	v := storedInvitation{Key: newName(), Value: invitationRecord{Email: email, Role: role, CreatedAt: now}}
	return m.sendToken(ctx, t, by, sysevent.InvitationCreated,
		func(ctx context.Context, r roster) (storedInvitation, []storage.Change, error) {
			swept, err := m.checkInvitable(ctx, t, r, email)
			return v, swept, err
		})
}

// sweep is the maximum number of expired invitations that each new one removes.
const sweep = 100

// checkInvitable returns an error if an address is already invited or a member, or if the organization is full. It
// returns the changes that remove expired invitations.
func (m *Members) checkInvitable(ctx context.Context, t id.Tenant, r roster, email string) ([]storage.Change, error) {
	open, expired, err := m.readInvitations(ctx, t)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(open, func(v storedInvitation) bool { return v.Value.Email == email }) {
		return nil, errMember("invited", "The address has an open invitation: send that again, or revoke it")
	}
	if len(r)+len(open) >= maxMembers {
		return nil, errMember("member_limit", fmt.Sprintf(
			"The organization has %d members and open invitations, which is the limit", maxMembers))
	}
	who, err := m.Accounts.Find(ctx, email)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	if _, isMember := r.findAccount(who.ID); err == nil && isMember {
		return nil, errMember("member", "The address is one of a member")
	}
	var swept []storage.Change
	for _, v := range expired[:min(len(expired), sweep)] {
		swept = append(swept, removeInvitation(v))
	}
	return swept, nil
}

func errMember(code, message string) error {
	return &fault.Error{Kind: fault.Conflict, Code: code, Message: message}
}

func removeInvitation(v storedInvitation) storage.Change {
	return storage.Change{Kind: kindInvitation, Key: v.Key, If: v.Version}
}

// Resend replaces the token of an invitation by a new one, valid for seven more days, and states it
// (ledger_invitation_renewed). It returns the errors of Invite, and fault.NotFound for an unknown invitation.
func (m *Members) Resend(ctx context.Context, t id.Tenant, by *account.Session, invitation string) (Sent, error) {
	return m.sendToken(ctx, t, by, sysevent.InvitationRenewed,
		func(ctx context.Context, _ roster) (storedInvitation, []storage.Change, error) {
			v, err := m.readInvitation(ctx, t, invitation)
			return v, nil, err
		})
}

// readInvitation returns an invitation, even if it has expired but was not removed yet.
func (m *Members) readInvitation(ctx context.Context, t id.Tenant, invitation string) (storedInvitation, error) {
	v, err := m.invitations.Get(ctx, t, invitation)
	if err == nil && !v.Exists() {
		err = fault.New(fault.NotFound, "Not found")
	}
	return v, err
}

// sendToken writes the invitation that choose returns with a new token.
func (m *Members) sendToken(
	ctx context.Context, t id.Tenant, by *account.Session, kind sysevent.Kind,
	choose func(context.Context, roster) (storedInvitation, []storage.Change, error),
) (sent Sent, err error) {
	cause := newName()
	prepare := func(ctx context.Context, s *log.State) (sysevent.Change, error) {
		r, err := m.Accounts.Members(ctx, t)
		if err != nil {
			return sysevent.Change{}, err
		}
		v, changes, err := choose(ctx, r)
		if err != nil {
			return sysevent.Change{}, err
		}
		if err := roster(r).checkActor(by, account.Invite, v.Value.Role); err != nil {
			return sysevent.Change{}, err
		}
		paced, err := m.Quota.CountStatement(ctx, t)
		if err != nil {
			return sysevent.Change{}, err
		}
		v.Value.CreatedBy = by.Account
		v.Value.ExpiresAt = id.InstantOf(m.Clock().Add(invitationLife))
		var token string
		if token, v.Value.Hash, err = newToken(s.Identity().Organization, v.Key); err != nil {
			return sysevent.Change{}, err
		}
		var mailed []storage.Change
		if sent, mailed, err = m.mailToken(ctx, toInvitation(t, v), token, cause); err != nil {
			return sysevent.Change{}, err
		}
		v.Value.Mailed = sent.Mailed
		put, err := m.invitations.Put(v)
		changes = slices.Concat(changes, paced, mailed, []storage.Change{put})
		return stateInvitation(kind, v, changes), err
	}
	_, err = m.Events.Append(ctx, t, string(by.Account), prepare)
	return sent, err
}

// mailToken returns the changes that mail a token, or the token for the inviter.
func (m *Members) mailToken(ctx context.Context, i Invitation, token, cause string) (Sent, []storage.Change, error) {
	if m.Mail != nil {
		changes, err := m.Mail.InvitationMail(ctx, i, token, cause)
		if err != nil || len(changes) > 0 {
			return Sent{Invitation: i, Mailed: true}, changes, err
		}
	}
	return Sent{Invitation: i, Token: token}, nil, nil
}

func stateInvitation(kind sysevent.Kind, v storedInvitation, changes []storage.Change) sysevent.Change {
	return sysevent.Change{Changes: changes, Statements: []sysevent.Statement{{Kind: kind, Payload: map[string]any{
		"invitation_id": v.Key, "role": v.Value.Role, "expires_at": v.Value.ExpiresAt,
	}}}}
}

// Revoke deletes an invitation and states it (ledger_invitation_revoked). It returns the errors of Change.
func (m *Members) Revoke(ctx context.Context, t id.Tenant, by *account.Session, invitation string) error {
	return m.appendChange(ctx, t, by.Account, func(ctx context.Context, r roster) (sysevent.Change, error) {
		v, err := m.readInvitation(ctx, t, invitation)
		if err != nil {
			return sysevent.Change{}, err
		}
		if err := r.checkActor(by, account.ChangeMembers, v.Value.Role); err != nil {
			return sysevent.Change{}, err
		}
		return stateInvitation(sysevent.InvitationRevoked, v, []storage.Change{removeInvitation(v)}), nil
	})
}

// Accept makes an account a member with an invitation for its address and states it (ledger_member_added). It returns
// fault.NotFound for a token that cannot be accepted, fault.Forbidden for an account with another address,
// fault.Forbidden with code address_unproved for an unproved account of another organization, and fault.Conflict with
// code member for a member.
func (m *Members) Accept(ctx context.Context, t id.Tenant, who account.Account, token Token) error {
	return m.appendChange(ctx, t, who.ID, func(ctx context.Context, r roster) (sysevent.Change, error) {
		v, err := m.findByToken(ctx, t, r, token)
		if err != nil {
			return sysevent.Change{}, err
		}
		if v.Value.Email != who.Email {
			return sysevent.Change{}, fault.New(fault.Forbidden, "The invitation is for another address")
		}
		if err := m.Accounts.CheckJoin(ctx, who.ID, t); err != nil {
			return sysevent.Change{}, err
		}
		if _, isMember := r.findAccount(who.ID); isMember {
			return sysevent.Change{}, errMember("member", "The address is one of a member")
		}
		record, made, err := m.Accounts.NewMembership(ctx, t, who.ID, v.Value.Role)
		if err != nil {
			return sysevent.Change{}, err
		}
		return sysevent.Change{Changes: []storage.Change{record, removeInvitation(v)},
			Statements: []sysevent.Statement{{Kind: sysevent.MemberAdded, Payload: map[string]any{
				"membership_id": made.ID, "account_id": who.ID, "role": made.Role,
				"invitation_id": v.Key, "invited_by": v.Value.CreatedBy,
			}}}}, nil
	})
}
