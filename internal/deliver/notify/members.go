package notify

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/mail"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// maxReaders is the number of members who are mailed for one cause: the ones who joined first.
const maxReaders = 50

// Organizations returns the names of organizations. org.Orgs implements it.
type Organizations interface {
	Summary(ctx context.Context, t id.Tenant) (org.Summary, error)
}

// OrganizationMail sends mails of an organization to members and invited users. It implements member.Mail and
// webhook.Mail.
type OrganizationMail struct {
	Outbox        *mail.Outbox
	Organizations Organizations
	Accounts      *account.Accounts
	PublicURL     string
}

// InvitationMail implements member.Mail. A new token replaces a mail that waits.
func (l OrganizationMail) InvitationMail(
	ctx context.Context, i member.Invitation, token, cause string,
) ([]storage.Change, error) {
	if !l.Outbox.Enabled() {
		return nil, nil
	}
	counted := mail.Stranger{Address: i.Email, Cause: cause, Organization: i.Tenant}
	if err := l.Outbox.CountStranger(ctx, counted); err != nil {
		return nil, err
	}
	summary, err := l.Organizations.Summary(ctx, i.Tenant)
	if err != nil {
		return nil, err
	}
	return l.Outbox.WriteMessages(ctx, i.Tenant, mail.Named{Name: "invitation-" + i.ID, Message: mail.Message{
		To: i.Email, Subject: "You are invited to an organization", Until: i.ExpiresAt,
		Text: fmt.Sprintf("You are invited to an organization at %s.\n\n"+
			"Its name: %s\nYour role: %s\n\n"+
			"Accept within seven days with this link, which works once:\n\n%s\n\n"+
			"If you do not know the organization, do nothing.\n",
			serviceURL(l.PublicURL), OrganizationName(summary), i.Role, member.InvitationURL(l.PublicURL, token)),
	}})
}

// VoterKeyMail implements voterkey.Mail. Mails to an address that was never proved are bounded (MayMail).
func (l OrganizationMail) VoterKeyMail(
	ctx context.Context, t id.Tenant, who account.Account, registered bool, thumbprint string,
) ([]storage.Change, error) {
	if !l.Outbox.Enabled() || who.Email == "" {
		return nil, nil
	}
	if may, err := MayMail(ctx, l.Outbox, who, t); err != nil || !may {
		return nil, err
	}
	summary, err := l.Organizations.Summary(ctx, t)
	if err != nil {
		return nil, err
	}
	name := "voter-key-retired"
	subject, change := "A passkey no longer signs your votes", "A passkey of yours no longer signs votes"
	if registered {
		name = "voter-key-registered"
		subject, change = "A passkey signs your votes now", "A passkey was registered to sign your votes"
	}
	return l.Outbox.WriteMessages(ctx, t, mail.Named{Name: name + "-" + thumbprint, Message: mail.Message{
		To: who.Email, Subject: subject,
		Text: fmt.Sprintf("%s.\n\nOrganization: %s (%s)\nService: %s\nPasskey (thumbprint): %s\n\n"+
			"If it was not you, tell the owners of the organization at once.\n",
			change, OrganizationName(summary), summary.Slug, serviceURL(l.PublicURL), thumbprint),
	}})
}

// EndpointMail implements webhook.Mail. It notifies the members who may change endpoints.
func (l OrganizationMail) EndpointMail(
	ctx context.Context, t id.Tenant, e webhook.DisabledEndpoint,
) ([]storage.Change, error) {
	if !l.Outbox.Enabled() {
		return nil, nil
	}
	summary, err := l.Organizations.Summary(ctx, t)
	if err != nil {
		return nil, err
	}
	why := "no delivery got through for five days"
	if e.Why == webhook.ByReceiver {
		why = "the receiver answered that it is gone (410)"
	}
	readers, err := l.findReaders(ctx, t, account.Manage)
	if err != nil {
		return nil, err
	}
	all := make([]mail.Named, len(readers))
	for i, who := range readers {
		all[i] = mail.Named{Name: "endpoint-" + string(e.ID) + "-" + string(who.ID), Message: mail.Message{
			To: who.Email, Subject: "A webhook endpoint was disabled",
			Text: fmt.Sprintf("The webhook endpoint %s at %s was disabled: %s.\n\n"+
				"Organization: %s (%s)\nService: %s\n\n"+
				"Pending deliveries are now dead letters. "+
				"Fix the receiver, activate the endpoint, and replay them.\n",
				e.ID, e.Host, why, OrganizationName(summary), summary.Slug, serviceURL(l.PublicURL)),
		}}
	}
	return l.Outbox.WriteMessages(ctx, t, all...)
}

// findReaders returns the accounts of effective members with a permission who may be mailed now, but at most
// maxReaders.
func (l OrganizationMail) findReaders(
	ctx context.Context, t id.Tenant, p account.Permission,
) ([]account.Account, error) {
	members, err := l.Accounts.Members(ctx, t)
	if err != nil {
		return nil, err
	}
	var found []account.Account
	for i := range members {
		if m := &members[i]; !m.IsEffective() || !m.Role.May(p) || len(found) == maxReaders {
			continue
		}
		who, err := l.Accounts.ByID(ctx, members[i].Account)
		if fault.Is(err, fault.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		may, err := MayMail(ctx, l.Outbox, who, t)
		if err != nil {
			return nil, err
		}
		if may {
			found = append(found, who)
		}
	}
	return found, nil
}
