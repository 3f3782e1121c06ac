package console

import (
	"net/url"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

func (p *pages) memberScreens() []page.Screen {
	return []page.Screen{
		{Pattern: membersPage, Query: []string{"after"},
			Views: p.views, Name: "members", Title: "Members", Show: p.listMembers,
			Forms: map[string]page.Form{"invite": p.invite, "resend": p.resendInvitation,
				"revoke": p.revokeInvitation}},
		{Pattern: membersPage + "/{membership}", Views: p.views, Name: "member", Show: p.showMember,
			Forms: map[string]page.Form{"role": p.changeRole, "suspend": p.suspend, "resume": p.resume,
				"remove": p.remove, "leave": p.leave, "retire-voter": p.retireVoterOfMember}},
	}
}

const membersPage = "/console/members"

// member is a member on a page.
type member struct{ wire.Member }

func describeMembers(list []wire.Member) []member {
	shown := make([]member, len(list))
	for i := range list {
		shown[i] = member{list[i]}
	}
	return shown
}

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

// membersView is the content of the list.
type membersView struct {
	Members     []member
	Next        string // address of the next page
	Invitations []wire.Invitation
	Roles       []page.Option // roles that the user may assign
	MaySee      bool          // invitations
	MayInvite   bool
}

func (p *pages) listMembers(r *page.Request) (any, error) {
	v := membersView{Roles: rolesFor(r), MaySee: r.Person.May("change members"), MayInvite: r.Person.May("invite")}
	found, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, r.PageQuery())
	v.Members, v.Next = describeMembers(found.Members), r.NextPage(found.Next)
	if err == nil && v.MaySee {
		v.Invitations, err = readInvitations(r)
	}
	return v, err
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
}

// mostMembers is the maximum number of members of an organization. They fit on one page of the interface.
const mostMembers = "1000"

// showMember shows a member. It searches the list, because there is no function for a single member.
func (p *pages) showMember(r *page.Request) (any, error) {
	found, err := visitOf(r).Identity.ListMembers(r.Context(), visitOf(r).person, url.Values{"limit": {mostMembers}})
	if err != nil {
		return nil, err
	}
	name := r.PathParameter("membership")
	at := slices.IndexFunc(found.Members, func(m wire.Member) bool { return m.MembershipID == name })
	if at < 0 {
		return nil, fault.New(fault.NotFound, "Not found")
	}
	v := memberView{member: member{found.Members[at]}, Roles: rolesFor(r), Self: name == r.Person.User.MembershipID}
	v.MayChange = r.Person.May("change members") && (v.Role != "owner" || r.Person.May("own"))
	r.Title = "Member " + v.Name()
	v.MayRetire = v.Self || r.Person.May("own")
	v.VoterKeys, err = readVoterKeys(r, v.AccountID)
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
