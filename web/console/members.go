package console

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	api "github.com/agentledger/agentledger/console"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/slacklink"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) memberScreens() []page.Screen {
	return []page.Screen{
		{Pattern: membersPage, Query: tableQuery(), Views: p.views, Name: "members", Title: "People", Show: p.listMembers,
			Forms: map[string]page.Form{"invite": p.invite, "check-invitees": p.previewInvitees, "invite-all": p.inviteAll,
				"resend": p.resendInvitation, "revoke": p.revokeInvitation}},
		{Pattern: membersPage + "/{membership}", Views: p.views, Name: "member", Show: p.showMember,
			Forms: map[string]page.Form{"role": p.changeRole, "suspend": p.suspend, "resume": p.resume,
				"remove": p.remove, "leave": p.leave, "end-deputy": p.endDeputyOfMember, "retire-voter": p.retireVoterOfMember,
				"unlink-slack": p.removeSlackLinkOfMember}},
	}
}

const membersPage = "/console/members"

// member is a member on a page.
type member struct{ wire.Member }

// State reports whether the member can act.
func (m member) State() string {
	switch {
	case m.Offered:
		return "not accepted yet"
	case m.Suspended:
		return "suspended"
	}
	return "active"
}

// membersView is the content of the list, or the form for an invitation.
type membersView struct {
	Table     *table
	People    []*person
	New       bool          // show the form
	Invitees  *inviteesView // what the form would do; nil before it was sent
	Roles     []page.Option // roles that the user may assign
	MaySee    bool          // invitations, and how members sign in
	MayInvite bool
}

// person is a row of the list: a member or an open invitation.
type person struct {
	member
	Invitation *wire.Invitation // nil for a member
	SignIn     *identity.MemberSignIn
}

// Name returns the name of the member, or the invited address.
func (p *person) Name() string {
	if p.Invitation != nil {
		return p.Invitation.Email
	}
	return p.member.Name()
}

// RoleName returns the role of the member or of the invitation.
func (p *person) RoleName() string {
	if p.Invitation != nil {
		return p.Invitation.Role
	}
	return p.Role
}

// Begin returns when the membership or the invitation began.
func (p *person) Begin() id.Instant {
	if p.Invitation != nil {
		return p.Invitation.CreatedAt
	}
	return p.MemberSince
}

// Status reports whether the person can act.
func (p *person) Status() string {
	if p.Invitation != nil {
		return "invited"
	}
	return p.State()
}

// PasswordOnly reports whether the password of a member is enough to sign in.
func (p *person) PasswordOnly() bool { return p.SignIn != nil && len(p.SignIn.Factors) == 0 }

func (p *pages) listMembers(r *page.Request) (any, error) {
	v := membersView{Roles: rolesFor(r), MaySee: r.Person.May("change members"), MayInvite: r.Person.May("invite")}
	if v.New = v.MayInvite && isNew(r, "invite", "check-invitees", "invite-all"); v.New {
		r.Title = "Invite people"
		return v, nil
	}
	file, err := asFile(r)
	if err != nil {
		return nil, err
	}
	found, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, url.Values{"limit": {maxEntries}})
	if err != nil {
		return nil, err
	}
	var all []*person
	for _, m := range found.Members {
		all = append(all, &person{member: member{m}})
	}
	if v.MaySee {
		invitations, err := readInvitations(r)
		if err != nil {
			return nil, err
		}
		for i := range invitations {
			all = append(all, &person{Invitation: &invitations[i]})
		}
	}
	v.People, v.Table, err = newTable(r, all,
		func(p *person) string { return p.Name() + " " + p.Email + " " + p.RoleName() + " " + p.Status() },
		[]sortable[*person]{
			{"name", func(a, b *person) int { return strings.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name())) }},
			{"role", func(a, b *person) int { return strings.Compare(a.RoleName(), b.RoleName()) }},
			{"state", func(a, b *person) int { return strings.Compare(a.Status(), b.Status()) }},
			{"since", func(a, b *person) int { return cmp.Compare(a.Begin(), b.Begin()) }},
		})
	v.Table.Label, v.Table.Hint = "Search people", "Name, address, role or state"
	if n := len(all) - len(found.Members); n > 0 && v.Table.Search == "" {
		v.Table.Note = fmt.Sprintf(", %d of them invited", n)
	}
	if found.Next != "" {
		v.Table.Note += " (the list is cut: only the first 1,000 members are read)"
	}
	if err != nil {
		return v, r.Correctable(err)
	}
	if v.MaySee {
		if err := v.addSignIns(r); err != nil {
			return nil, err
		}
	}
	if file {
		return v.csv(), nil
	}
	return v, nil
}

// addSignIns adds how the shown members sign in.
func (v *membersView) addSignIns(r *page.Request) error {
	var accounts []string
	for _, p := range v.People {
		accounts = append(accounts, p.AccountID)
	}
	found, err := visitOf(r).Identity.MemberSignIns(r.Context(), visitOf(r).person, accounts)
	for _, p := range v.People {
		if s, is := found[p.AccountID]; is {
			p.SignIn = &s
		}
	}
	return err
}

// csv returns the list as a file.
func (v *membersView) csv() *page.File {
	columns := []string{"name", "email", "role", "state", "since"}
	if v.MaySee {
		columns = append(columns, "second_factors", "last_seen")
	}
	return csvFile("people", columns, v.People, func(p *person) []api.Cell {
		email := p.Email
		if p.Invitation != nil {
			email = p.Invitation.Email
		}
		cells := []api.Cell{api.TextCell(p.Name()), api.TextCell(email), api.TextCell(p.RoleName()), api.TextCell(p.Status()),
			api.TextCell(p.Begin().String())}
		switch {
		case !v.MaySee:
		case p.SignIn == nil:
			cells = append(cells, "", "")
		default:
			seen := ""
			if p.SignIn.SeenAt != 0 {
				seen = p.SignIn.SeenAt.String()
			}
			cells = append(cells, api.TextCell(strings.Join(p.SignIn.Factors, " ")), api.TextCell(seen))
		}
		return cells
	})
}

// rolesFor returns the roles that the user may assign. Only owners may make owners.
func rolesFor(r *page.Request) []page.Option {
	all := []page.Option{{Value: "member", Title: "member"}, {Value: "auditor", Title: "auditor"},
		{Value: "approver", Title: "approver"}, {Value: "policy_editor", Title: "policy editor"},
		{Value: "admin", Title: "admin"}}
	if r.Person.May("own") {
		all = append(all, page.Option{Value: "owner", Title: "owner"})
	}
	return all
}

// memberView is the content of a member's page.
type memberView struct {
	member
	Roles     []page.Option // roles that the user may assign
	Self      bool          // the member is the user
	MayChange bool
	VoterKeys []wire.VoterKey
	MayRetire bool // voter keys of the member

	Deputies     []deputyship // in which the member is represented, or votes in place of another
	MayEndDeputy bool
	SlackLinks   []slacklink.Link // only for readers who may remove them
}

// mostMembers is the maximum number of members of an organization. They fit on one page of the interface.
const mostMembers = "1000"

// findMember returns the member on the page. It searches the list, because there is no function for a single member.
func findMember(r *page.Request) (member, error) {
	found, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, url.Values{"limit": {mostMembers}})
	if err != nil {
		return member{}, err
	}
	name := r.PathParameter("membership")
	at := slices.IndexFunc(found.Members, func(m wire.Member) bool { return m.MembershipID == name })
	if at < 0 {
		return member{}, fault.New(fault.NotFound, "Not found")
	}
	return member{found.Members[at]}, nil
}

// showMember shows a member.
func (p *pages) showMember(r *page.Request) (any, error) {
	m, err := findMember(r)
	if err != nil {
		return nil, err
	}
	v := memberView{member: m, Roles: rolesFor(r), Self: m.MembershipID == r.Person.User.MembershipID}
	v.MayChange = r.Person.May("change members") && (v.Role != "owner" || r.Person.May("own"))
	r.Title = v.Name()
	v.MayRetire = v.Self || r.Person.May("own")
	if v.Self || r.Person.May("change members") {
		if v.SlackLinks, err = visitOf(r).Console.ListSlackLinks(r.Context(), visitOf(r).caller, account.ID(v.AccountID)); err != nil {
			return nil, err
		}
	}
	if v.VoterKeys, err = readVoterKeys(r, v.AccountID); err != nil {
		return nil, err
	}
	all, err := readDeputies(r)
	for _, d := range all {
		if d.AccountID == v.AccountID || d.DeputyAccountID == v.AccountID {
			v.Deputies = append(v.Deputies, d)
		}
	}
	v.MayEndDeputy = r.Person.May("change members")
	return v, err
}

// retireVoterOfMember stops a passkey of the member from signing votes in the organization.
func (p *pages) retireVoterOfMember(r *page.Request) (page.Outcome, error) {
	v := visitOf(r)
	err := v.Console.RetireVoterKey(r.Context(), v.caller, r.Value("credential_id"))
	return page.GoTo(r.Address(membersPage, r.PathParameter("membership")), "saved"), err
}

// change changes the member on the page.
func (p *pages) change(r *page.Request, notice string, patch identity.MemberPatch) (page.Outcome, error) {
	name := r.PathParameter("membership")
	_, err := visitOf(r).Identity.ChangeMember(r.Context(), visitOf(r).person, name, patch)
	return page.GoTo(r.Address(membersPage, name), notice), err
}

func (p *pages) changeRole(r *page.Request) (page.Outcome, error) {
	return p.change(r, "saved", identity.MemberPatch{Role: new(account.Role(r.Value("role")))})
}

func (p *pages) suspend(r *page.Request) (page.Outcome, error) {
	return p.change(r, "member-suspended", identity.MemberPatch{Suspended: new(true)})
}

func (p *pages) resume(r *page.Request) (page.Outcome, error) {
	return p.change(r, "member-resumed", identity.MemberPatch{Suspended: new(false)})
}

func (p *pages) remove(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.RemoveMember(r.Context(), visitOf(r).person, r.PathParameter("membership"))
	return page.GoTo(r.Address(membersPage), "member-removed"), err
}

// leave ends the user's own membership, and with it the session.
func (p *pages) leave(r *page.Request) (page.Outcome, error) {
	own := r.Person.User.MembershipID
	if r.PathParameter("membership") != own {
		return page.Outcome{}, fault.New(fault.Invalid, "You can leave only your own membership")
	}
	err := visitOf(r).Identity.RemoveMember(r.Context(), visitOf(r).person, own)
	return page.GoTo(r.Address("/signin"), "member-left"), err
}
