package console

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// readInvitations reads all open invitations. An organization has at most one page of them.
func readInvitations(r *page.Request) ([]wire.Invitation, error) {
	found, err := visitOf(r).Identity.ListInvitations(r.Context(), visitOf(r).person, url.Values{"limit": {mostMembers}})
	return found.Invitations, err
}

// maxInvitees is the maximum number of addresses that one form invites.
const maxInvitees = 100

// invitee is an address in the form.
type invitee struct {
	Text  string // as it was pasted
	Email string // "" if Text is no address
	Known string // why it needs no invitation, as a sentence; "" if it needs one

	Sent    *wire.SentInvitation // nil if it was not invited
	Problem string               // why it was not invited although it needs an invitation
}

// Trouble returns what is wrong with the address; "" if nothing is.
func (i *invitee) Trouble() string {
	switch {
	case i.Problem != "":
		return i.Problem
	case i.Email == "":
		return "This is no e-mail address."
	}
	return ""
}

// inviteesView is what will happen, or has happened, to each address.
type inviteesView struct {
	All     []*invitee
	Role    string
	New     int  // addresses that need an invitation
	Wrong   int  // addresses with trouble
	Changed bool // the form was sent, and differs from what was shown before
	Sent    int
	Links   bool     // some invitations were not mailed
	Rest    []string // addresses that were not invited, because the service refused one of them
}

// RestText returns Rest as the form has it.
func (v *inviteesView) RestText() string { return strings.Join(v.Rest, "\n") }

// Digest identifies what the form would do: the role, and the addresses that would be invited.
func (v *inviteesView) Digest() string {
	text := v.Role
	for _, one := range v.All {
		if one.Email != "" && one.Known == "" {
			text += "\n" + one.Email
		}
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// splitAddresses returns the addresses of a text, one a line or separated by commas or semicolons, as mail programs write them. A
// name before an address may be quoted, and then contains separators.
func splitAddresses(text string) (all []string) {
	quoted, escaped := false, false
	for _, part := range strings.FieldsFunc(text, func(c rune) bool {
		switch {
		case c == '\n' || c == '\r':
			quoted, escaped = false, false
			return true
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		return !quoted && (c == ',' || c == ';')
	}) {
		part = strings.TrimSpace(part)
		if from := strings.LastIndexByte(part, '<'); from >= 0 && strings.HasSuffix(part, ">") {
			part = strings.TrimSpace(part[from+1 : len(part)-1])
		}
		if part != "" {
			all = append(all, part)
		}
	}
	return all
}

// readInvitees returns the addresses of the form, each once, with what is known about them.
func readInvitees(r *page.Request) (*inviteesView, error) {
	texts := splitAddresses(r.Form.Get("email"))
	if len(texts) == 0 {
		return nil, fault.New(fault.Invalid, "email is required")
	}
	if len(texts) > maxInvitees {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("email must have at most %d addresses, and has %d", maxInvitees, len(texts)))
	}
	known, err := knownAddresses(r)
	if err != nil {
		return nil, err
	}
	v := &inviteesView{Role: r.Value("role")}
	for _, text := range texts {
		one := &invitee{Text: text}
		if one.Email, err = account.ParseEmail(text); err != nil {
			one.Email = ""
			v.Wrong++
		} else if one.Known = known[one.Email]; one.Known == "" {
			known[one.Email] = "Already in this list; invited once"
			v.New++
		}
		v.All = append(v.All, one)
	}
	return v, nil
}

// knownAddresses returns why addresses need no invitation.
func knownAddresses(r *page.Request) (map[string]string, error) {
	known := make(map[string]string)
	invitations, err := readInvitations(r)
	if err != nil {
		return nil, err
	}
	for _, i := range invitations {
		known[i.Email] = "Already has an open invitation; not invited again"
	}
	members, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, url.Values{"limit": {mostMembers}})
	for _, m := range members.Members {
		known[m.Email] = "Already a member; not invited"
	}
	return known, err
}

// invite invites one person. For several addresses it shows what will happen to each of them.
func (p *pages) invite(r *page.Request) (page.Outcome, error) {
	texts := splitAddresses(r.Form.Get("email"))
	if len(texts) != 1 {
		return p.previewInvitees(r)
	}
	sent, err := visitOf(r).Identity.Invite(r.Context(), visitOf(r).person,
		identity.NewInvitation{Email: texts[0], Role: account.Role(r.Value("role"))})
	return p.showSent(r, sent, err)
}

// previewInvitees shows what will happen to each address.
func (p *pages) previewInvitees(r *page.Request) (page.Outcome, error) {
	all, err := readInvitees(r)
	if err != nil {
		return page.Outcome{}, err
	}
	return showInvitees(r, all), nil
}

func showInvitees(r *page.Request, all *inviteesView) page.Outcome {
	r.Title = "Invite people"
	return page.ShowAgain(membersView{Roles: rolesFor(r), MayInvite: true, New: true, Invitees: all})
}

// inviteAll invites the people of several addresses, in their order. If the role or the addresses are not those that the reader was
// shown, or an address is malformed, nobody is invited and they are shown again. If the service refuses an invitation, the later
// ones are not tried, and come back in a form.
func (p *pages) inviteAll(r *page.Request) (page.Outcome, error) {
	all, err := readInvitees(r)
	if err != nil {
		return page.Outcome{}, err
	}
	if all.Changed = r.Value("shown") != all.Digest(); all.Changed || all.Wrong > 0 {
		return showInvitees(r, all), nil
	}
	refused := ""
	for _, one := range all.All {
		if one.Known != "" {
			continue
		}
		if refused != "" {
			one.Problem = "Not tried."
			all.Rest = append(all.Rest, one.Email)
			continue
		}
		sent, err := visitOf(r).Identity.Invite(r.Context(), visitOf(r).person, identity.NewInvitation{Email: one.Email, Role: account.Role(all.Role)})
		switch {
		case err == nil:
			one.Sent = &sent
			all.Sent++
			all.Links = all.Links || !sent.Mailed
		case all.Sent == 0:
			return page.Outcome{}, err
		default: // the links of those before are shown only once
			refused = fault.Of(err).Message
			one.Problem = refused + "."
			all.Rest = append(all.Rest, one.Email)
		}
	}
	return p.showLinks("invited", "Invitations", all), nil
}

// resendInvitation creates a new link. The previous link becomes invalid.
func (p *pages) resendInvitation(r *page.Request) (page.Outcome, error) {
	sent, err := visitOf(r).Identity.ResendInvitation(r.Context(), visitOf(r).person, r.Value("invitation"))
	return p.showSent(r, sent, err)
}

// showSent shows the link of an invitation that was not mailed, unless err is set.
func (p *pages) showSent(r *page.Request, sent wire.SentInvitation, err error) (page.Outcome, error) {
	switch {
	case err != nil:
		return page.Outcome{}, err
	case sent.Mailed:
		return page.GoTo(r.Address(membersPage), "invitation-mailed"), nil
	}
	return p.showLinks("openinvitation", "The invitation", sent), nil
}

// showLinks shows a page with links once, with buttons that copy them.
func (p *pages) showLinks(name, title string, content any) page.Outcome {
	return page.ShowOnce(p.views, name, title, content).WithScript(startScript, "times.js")
}

func (p *pages) revokeInvitation(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.RevokeInvitation(r.Context(), visitOf(r).person, r.Value("invitation"))
	return page.GoTo(r.Address(membersPage), "invitation-revoked"), err
}
