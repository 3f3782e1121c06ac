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
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/storage"
)

// maxReaders is the number of members who are mailed for one cause: the ones who joined first.
const maxReaders = 50

// Organizations returns the names of organizations. org.Orgs implements it.
type Organizations interface {
	Summary(ctx context.Context, t id.Tenant) (org.Summary, error)
}

// OrganizationMail sends mails of an organization to members and invited users. It implements member.Mail,
// voterkey.Mail, slacklink.Mail and webhook.Mail.
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

// VoterKeyMail implements voterkey.Mail.
func (l OrganizationMail) VoterKeyMail(
	ctx context.Context, t id.Tenant, who account.Account, registered bool, thumbprint string,
) ([]storage.Change, error) {
	name := "voter-key-retired"
	subject, change := "A passkey no longer signs your votes", "A passkey of yours no longer signs votes"
	if registered {
		name = "voter-key-registered"
		subject, change = "A passkey signs your votes now", "A passkey was registered to sign your votes"
	}
	return l.writeToMember(ctx, t, who, name+"-"+thumbprint, subject, func(summary org.Summary) string {
		return fmt.Sprintf("%s.\n\nOrganization: %s (%s)\nService: %s\nPasskey (thumbprint): %s\n\n"+
			"If it was not you, tell the owners of the organization at once.\n",
			change, OrganizationName(summary), summary.Slug, serviceURL(l.PublicURL), thumbprint)
	})
}

// writeToMember writes a mail to a member, unless the service has no mail server or an address that was never proved has got
// too many (MayMail). A mail of the same name that waits is replaced.
func (l OrganizationMail) writeToMember(
	ctx context.Context, t id.Tenant, who account.Account, name, subject string, text func(org.Summary) string,
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
	return l.Outbox.WriteMessages(ctx, t, mail.Named{Name: name, Message: mail.Message{To: who.Email, Subject: subject, Text: text(summary)}})
}

// DeputyMail implements member.Mail.
func (l OrganizationMail) DeputyMail(ctx context.Context, t id.Tenant, d member.Deputyship) ([]storage.Change, error) {
	if !l.Outbox.Enabled() {
		return nil, nil
	}
	deputy, err := l.Accounts.ByID(ctx, d.Deputy)
	if err != nil {
		return nil, err
	}
	person, err := l.Accounts.ByID(ctx, d.Person)
	if err != nil {
		return nil, err
	}
	return l.writeToMember(ctx, t, deputy, "deputy-"+string(d.Person), "You are the deputy of another member", func(summary org.Summary) string {
		service := serviceURL(l.PublicURL)
		return fmt.Sprintf("%s named you as deputy: you vote on approvals in that member's place.\n\n"+
			"Organization: %s (%s)\nService: %s\nFrom: %s\nUntil: %s\n\n"+
			"In that time you are mailed when an approval waits. The two of you have one vote together, and the log says in "+
			"whose place you voted.\n\nIf you do not want this, give it back on your account page:\n\n%s/account#deputy\n",
			person.Email, OrganizationName(summary), summary.Slug, service, mailTime(d.From), mailTime(d.Until), service)
	})
}

// mailTime shows a time with its year, because a mail may be read later.
func mailTime(at id.Instant) string { return at.Time().UTC().Format("2 Jan 2006 15:04") + " UTC" }

// SlackLinkMail implements slacklink.Mail. The user of Slack chose the name, so it is shown only if no mail program makes a link of it.
func (l OrganizationMail) SlackLinkMail(ctx context.Context, t id.Tenant, who account.Account, made slacklink.Link) ([]storage.Change, error) {
	return l.writeToMember(ctx, t, who, made.LinkID, "A Slack user votes in your name now", func(summary org.Summary) string {
		service := serviceURL(l.PublicURL)
		return fmt.Sprintf("A Slack user was linked to your account. Whoever controls it votes in your name.\n\n"+
			"Slack user: %s, with the name “%s”\nSlack workspace: %s\nOrganization: %s (%s)\nService: %s\n\n"+
			"If it is not your own, remove it at once and tell the owners of the organization:\n\n%s/account/slack\n",
			made.ID, safeValue(made.Name), made.Team, OrganizationName(summary), summary.Slug, service, service)
	})
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
			To: who.Email, Subject: "A webhook receiver was switched off",
			Text: fmt.Sprintf("The webhook receiver %s at %s was switched off: %s.\n\n"+
				"Organization: %s (%s)\nService: %s\n\n"+
				"Its pending deliveries were given up and are listed as undelivered. "+
				"Fix the receiver, switch it on, and send them again.\n",
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
