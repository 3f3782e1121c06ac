// Package notify writes the mails of the service to its users: it contains their texts and chooses the recipients.
// Package mail sends them.
//
// Invariants:
//
//   - A mail is written together with its cause. If the service has no mail server, the methods return no changes.
//   - A token is in the fragment of a link, so that it is in no server's log.
//   - Texts of callers are only in bodies, on one line each. The URLs of webhooks are in no mail. Values of payloads are in
//     mails to approvers if the organization allows it: those of its columns, also in subjects, except texts that could
//     be taken for a link. The name
//     of an organization is shown only if it cannot be taken for a link (OrganizationName).
//   - A mail to an address that does not belong to a member, or that the member has not proved to own, is counted
//     before it is written (mail.CountStranger).
//   - A cause produces at most one mail for each recipient, and at most 50 in total.
//
// Voters notifies approvers that approvals wait. A question is counted in the append that asks it, which costs one
// record. The mails follow later, at least once, even if the process dies in between. A recipient gets at most one mail
// of an organization in ten minutes. The mail is about the one question that is new to the recipient, or lists at most
// ten questions, with tool, agent, the rule's reason, time and link. It goes to members who may vote on each listed question when it is written, and who have not turned these
// mails off. A turn of an organization writes at most 50 mails, so that others do not wait longer.
//
// Weekly sums up the week before on Mondays, for the members who asked for it.
package notify

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// AccountMail sends mails to the owner of an account. It implements account.Mail.
type AccountMail struct {
	Outbox    *mail.Outbox
	PublicURL string
}

// Enabled reports whether mails are sent.
func (l AccountMail) Enabled() bool { return l.Outbox.Enabled() }

// writeOne writes a mail to the service's own partition, because an account does not belong to an organization.
func (l AccountMail) writeOne(ctx context.Context, name string, m mail.Message) ([]storage.Change, error) {
	if !l.Outbox.Enabled() {
		return nil, nil
	}
	return l.Outbox.WriteMessages(ctx, id.Service, mail.Named{Name: name, Message: m})
}

// MayMail reports whether the owner of an account may be mailed now. An address that was never proved may belong to a
// stranger whom the holder of the account wants to annoy, so its mails are bounded like mails to a stranger, caused by
// an organization or by id.Service. They are counted separately from invitations, so that the holder cannot use up the
// mails by which the owner of the address takes the account over. An account whose address leads to another account
// gets no mail.
func MayMail(ctx context.Context, o *mail.Outbox, who account.Account, t id.Tenant) (bool, error) {
	if who.Released {
		return false, nil
	}
	if who.Proof != account.Unproved || !o.Enabled() {
		return true, nil
	}
	err := o.CountStranger(ctx, mail.Stranger{Address: who.Email, Purpose: "account", Organization: t})
	if fault.Is(err, fault.RateLimited) {
		return false, nil
	}
	return err == nil, err
}

// writeOwn writes a mail about an account to its owner, unless an unproved address has got too many.
func (l AccountMail) writeOwn(
	ctx context.Context, who account.Account, name string, m mail.Message,
) ([]storage.Change, error) {
	if may, err := MayMail(ctx, l.Outbox, who, id.Service); err != nil || !may {
		return nil, err
	}
	m.To = who.Email
	return l.writeOne(ctx, name+"-"+string(who.ID), m)
}

// serviceURL returns the public URL without a trailing slash.
func serviceURL(publicURL string) string { return strings.TrimRight(publicURL, "/") }

// ResetMail sends the link of a password reset. For an address without an account, it writes a mail without a
// recipient. It returns fault.RateLimited if a link for reset.Typed was requested in the last 10 minutes. There is no
// daily bound, because strangers could use it up and lock the owner of the account out.
func (l AccountMail) ResetMail(ctx context.Context, reset account.Reset) ([]storage.Change, error) {
	service := serviceURL(l.PublicURL)
	if l.Outbox.Enabled() && reset.Typed != "" {
		err := l.Outbox.CountStranger(ctx, mail.Stranger{Address: reset.Typed, Purpose: "reset", Unlimited: true})
		if err != nil {
			return nil, err
		}
	}
	return l.writeOne(ctx, "reset-"+reset.Name, mail.Message{
		To: reset.Email, Subject: "Set a new password", Until: reset.Until,
		Text: "A new password was requested for this address at " + service + ".\n\n" +
			"Set it within an hour with this link, which works once:\n\n" +
			service + "/reset-password#token=" + reset.Token + "\n\n" +
			"If you did not request it, do nothing: your password does not change.\n",
	})
}

// PasswordMail implements account.Mail.
func (l AccountMail) PasswordMail(ctx context.Context, who account.Account) ([]storage.Change, error) {
	return l.writeOwn(ctx, who, "password", mail.Message{
		Subject: "Your password was changed",
		Text: "The password of your account at " + serviceURL(l.PublicURL) + " was changed, " +
			"and all its sessions ended.\n\n" +
			"If it was not you, set a new password by \"forgot password\" now, " +
			"and tell the operator of the service.\n",
	})
}

// FactorMail implements account.Mail.
func (l AccountMail) FactorMail(
	ctx context.Context, who account.Account, kind account.LoginKind,
) ([]storage.Change, error) {
	var subject, change string
	switch kind {
	case account.AddedPasskey:
		subject, change = "A passkey was added to your account", "A passkey was added to your account at %s."
	case account.RemovedPasskey:
		subject, change = "A passkey was removed from your account", "A passkey was removed from your account at %s."
	case account.MadeCodes:
		subject = "New recovery codes were generated"
		change = "New recovery codes were generated for your account at %s. The previous codes no longer work."
	case account.UsedCode:
		subject, change = "A recovery code was used", "A recovery code of your account at %s was used to sign in."
	case account.RemovedFactors:
		subject = "Your passkeys and recovery codes were removed"
		change = "The operator removed all passkeys and recovery codes of your account at %s."
	default:
		return nil, nil
	}
	return l.writeOwn(ctx, who, string(kind), mail.Message{
		Subject: subject,
		Text: fmt.Sprintf(change, serviceURL(l.PublicURL)) + "\n\n" +
			"If it was not you, set a new password by \"forgot password\", check the passkeys and sessions of your " +
			"account, and tell the operator of the service.\n",
	})
}

// ConfirmMail implements account.Mail.
func (l AccountMail) ConfirmMail(ctx context.Context, c account.EmailChange) ([]storage.Change, error) {
	service := serviceURL(l.PublicURL)
	if l.Outbox.Enabled() {
		err := l.Outbox.CountStranger(ctx, mail.Stranger{Address: c.Email, Organization: c.Organization})
		if err != nil {
			return nil, err
		}
	}
	return l.writeOne(ctx, "confirm-"+string(c.Account), mail.Message{
		To: c.Email, Subject: "Confirm your address", Until: c.Until,
		Text: "This address was named as the new one of an account at " + service + ".\n\n" +
			"Confirm it within an hour with this link, which works once, in the browser where you are signed in:\n\n" +
			service + "/confirm-email#token=" + c.Token + "\n\n" +
			"If you did not request it, do nothing.\n",
	})
}

// AddressMail implements account.Mail.
func (l AccountMail) AddressMail(ctx context.Context, before account.Account) ([]storage.Change, error) {
	return l.writeOwn(ctx, before, "address", mail.Message{
		Subject: "The address of your account was changed",
		Text: "Your account at " + serviceURL(l.PublicURL) + " has another address now: this one is no " +
			"longer used.\n\n" +
			"If it was not you, tell the operator of the service at once.\n",
	})
}
