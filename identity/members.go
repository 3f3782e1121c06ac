package identity

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/wire"
)

// addMemberRoutes adds the routes for members and invitations.
func (s *Server) addMemberRoutes(table *edge.Table[handler]) {
	const members, invitations = organizationPath + "/members", organizationPath + "/invitations"
	permit := func(p account.Permission) edge.Permission {
		return edge.Permission{Credential: edge.Session, Right: string(p)}
	}
	reads, leaves := permit(account.Read), permit(account.Leave)
	changes, invites := permit(account.ChangeMembers), permit(account.Invite)
	none, some, everybody := edge.Body{}, edge.JSONBody(maxBody), edge.Permission{}
	table.Add("GET", members, reads, none, s.listMembers).TakesPage()
	table.Add("PATCH", members+"/{membership}", changes, some, s.changeMember)
	table.Add("DELETE", members+"/{membership}", leaves, none, s.removeMember)
	table.Add("GET", invitations, changes, none, s.listInvitations).TakesPage()
	table.Add("POST", invitations, invites, some, s.invitePerson)
	table.Add("POST", invitations+"/{invitation}/resend", invites, none, s.resendInvitation)
	table.Add("DELETE", invitations+"/{invitation}", changes, none, s.revokeInvitation)
	table.Add("GET", "/v1/id/invitations/preview", everybody, none, s.previewInvitation)
	table.Add("POST", "/v1/id/invitations/accept", edge.Permission{Right: sameOrigin}, some, s.acceptInvitation)
	table.Add("POST", "/v1/id/orgs/switch", edge.Permission{Credential: edge.Session, Right: sameOrigin}, some,
		s.switchOrganization)
}

// organizationPath is the path of an organization, which must be the session's.
const organizationPath = "/v1/id/orgs/{organization}"

// admitMember checks the permission of a caller for a path of an organization, which must be the session's. Any other
// organization is answered like one that does not exist.
func (s *Server) admitMember(r *http.Request, c *Caller, p account.Permission) error {
	organization, err := id.ParseOrganization(chi.URLParam(r, "organization"))
	if err != nil {
		return fault.Wrap(fault.NotFound, "Not found", err)
	}
	tenant, err := s.Orgs.ByID(r.Context(), organization)
	if err != nil {
		return err
	}
	if tenant != c.Who.Tenant {
		return fault.New(fault.NotFound, "Not found")
	}
	_, err = s.checkMember(r.Context(), c, p)
	return err
}

// checkMember returns an error unless the role of a session has a permission in the organization of the session. Each
// function about members begins with it. It is cheap for the permission that was checked last, which in calls over HTTP
// is the route's. Events of changes in the returned context name the session.
func (s *Server) checkMember(ctx context.Context, c *Caller, p account.Permission) (context.Context, error) {
	who, err := s.FindSession(ctx, c)
	if err != nil {
		return ctx, err
	}
	if c.right != p {
		if err := s.checkRight(ctx, who, p); err != nil {
			return ctx, err
		}
		c.right, c.moves = p, who.Tenant
	}
	return sysevent.WithSource(ctx, sysevent.Source{Credential: sysevent.BySession, ID: who.ID,
		Address: s.Address(c.request)}), nil
}

func (s *Server) checkRight(ctx context.Context, who *account.Session, p account.Permission) error {
	if err := s.Edge.CheckOwner(ctx, who.Tenant); err != nil {
		return err
	}
	if err := s.checkMethod(ctx, who.Tenant, who.SignIn); err != nil {
		return s.Edge.CheckLost(err, who.Tenant, nil)
	}
	if !who.Role.May(p) {
		return fault.New(fault.Forbidden, "Your role does not allow this")
	}
	if p.NeedsFactor() {
		if err := who.CheckFactor(); err != nil {
			return err
		}
	}
	if p.NeedsActive() {
		return s.Edge.CheckLost(s.checkActive(ctx, who.Tenant), who.Tenant, nil)
	}
	return nil
}

// checkActive returns an error if the operator has deactivated the organization, which then cannot gain people.
func (s *Server) checkActive(ctx context.Context, t id.Tenant) error {
	active, err := s.Orgs.Active(ctx, t)
	if err == nil && !active {
		err = fault.New(fault.Forbidden, "The organization is inactive: nobody can be invited")
	}
	return err
}

func describeMember(m member.Listed) wire.Member {
	return wire.Member{MembershipID: m.ID, AccountID: string(m.Account), Email: m.Email, EmailProved: m.EmailProved,
		DisplayName: m.DisplayName, Role: string(m.Role), MemberSince: m.Since, Suspended: m.Suspended,
		Offered: m.Offered}
}

func (s *Server) listMembers(w http.ResponseWriter, r *request) error {
	found, err := s.ListMembers(r.Context(), r.caller, r.URL.Query())
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, found)
}

// ListMembers returns a page of the members of the caller's organization.
func (s *Server) ListMembers(ctx context.Context, c *Caller, query url.Values) (wire.Members, error) {
	if _, err := s.checkMember(ctx, c, account.Read); err != nil {
		return wire.Members{}, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return wire.Members{}, err
	}
	found, err := s.Members.List(ctx, c.Who.Tenant, p.After, p.Limit+1)
	if err != nil {
		return wire.Members{}, err
	}
	var body wire.Members
	body.Members, body.Next = edge.CutPage(p, found, func(m member.Listed) string { return m.ID }, describeMember)
	return body, nil
}

// MemberSignIn is how a member signs in.
type MemberSignIn struct {
	SeenAt  id.Instant // when the member last used the organization, at most five minutes late; 0 if not recently
	Factors []string   // second factors: passkey, recovery_code
}

// MemberSignIns returns how members sign in, by account, to callers who may change members. It skips accounts that
// belong to no member, so that nobody learns about strangers.
func (s *Server) MemberSignIns(ctx context.Context, c *Caller, accounts []string) (map[string]MemberSignIn, error) {
	if _, err := s.checkMember(ctx, c, account.ChangeMembers); err != nil {
		return nil, err
	}
	members, err := s.Accounts.Members(ctx, c.Who.Tenant)
	if err != nil {
		return nil, err
	}
	found := make(map[string]MemberSignIn, len(accounts))
	for i := range members {
		who := members[i].Account
		if !slices.Contains(accounts, string(who)) {
			continue
		}
		seen, err := s.Accounts.LastSeen(ctx, who, c.Who.Tenant)
		if err != nil {
			return nil, err
		}
		factors, err := s.Factors.Summary(ctx, who)
		if err != nil {
			return nil, err
		}
		found[string(who)] = MemberSignIn{SeenAt: seen, Factors: factors.Second()}
	}
	return found, nil
}

// MemberPatch is a change of a member. Nil members stay as they are.
type MemberPatch struct {
	Role      *account.Role `json:"role"`
	Suspended *bool         `json:"suspended"`
}

func (s *Server) changeMember(w http.ResponseWriter, r *request) error {
	var patch MemberPatch
	if err := r.decodeBody(&patch); err != nil {
		return err
	}
	changed, err := s.ChangeMember(r.Context(), r.caller, chi.URLParam(r.Request, "membership"), patch)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, changed)
}

// ChangeMember changes a member of the caller's organization and returns it.
func (s *Server) ChangeMember(
	ctx context.Context, c *Caller, membership string, patch MemberPatch,
) (wire.Member, error) {
	ctx, err := s.checkMember(ctx, c, account.ChangeMembers)
	if err != nil {
		return wire.Member{}, err
	}
	changed, err := s.Members.Change(ctx, c.Who.Tenant, c.Who, membership, member.Change(patch))
	return describeMember(changed), err
}

func (s *Server) removeMember(w http.ResponseWriter, r *request) error {
	return writeNoContent(w, s.RemoveMember(r.Context(), r.caller, chi.URLParam(r.Request, "membership")))
}

// RemoveMember removes a member or lets one leave, whose session then ends.
func (s *Server) RemoveMember(ctx context.Context, c *Caller, membership string) error {
	ctx, err := s.checkMember(ctx, c, account.Leave)
	if err != nil {
		return err
	}
	return s.Members.Remove(ctx, c.Who.Tenant, c.Who, membership)
}

func describeInvitation(i member.Invitation) wire.Invitation {
	return wire.Invitation{InvitationID: i.ID, Email: i.Email, Role: string(i.Role), CreatedAt: i.CreatedAt,
		CreatedBy: string(i.CreatedBy), ExpiresAt: i.ExpiresAt}
}

func (s *Server) listInvitations(w http.ResponseWriter, r *request) error {
	found, err := s.ListInvitations(r.Context(), r.caller, r.URL.Query())
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, found)
}

// ListInvitations returns a page of the open invitations of the caller's organization.
func (s *Server) ListInvitations(ctx context.Context, c *Caller, query url.Values) (wire.Invitations, error) {
	if _, err := s.checkMember(ctx, c, account.ChangeMembers); err != nil {
		return wire.Invitations{}, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return wire.Invitations{}, err
	}
	found, err := s.Members.ListInvitations(ctx, c.Who.Tenant, p.After, p.Limit+1)
	if err != nil {
		return wire.Invitations{}, err
	}
	var body wire.Invitations
	body.Invitations, body.Next = edge.CutPage(p, found, func(i member.Invitation) string { return i.ID },
		describeInvitation)
	return body, nil
}

func (s *Server) describeSent(i member.Sent) wire.SentInvitation {
	sent := wire.SentInvitation{InvitationID: i.ID, ExpiresAt: i.ExpiresAt, Mailed: i.Mailed}
	if i.Token != "" {
		sent.URL = wire.Text(member.InvitationURL(s.PublicURL, i.Token))
	}
	return sent
}

// NewInvitation is the request for an invitation.
type NewInvitation struct {
	Email string       `json:"email"`
	Role  account.Role `json:"role"`
}

func (s *Server) invitePerson(w http.ResponseWriter, r *request) error {
	var body NewInvitation
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	sent, err := s.Invite(r.Context(), r.caller, body)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, sent)
}

// Invite invites a person to the caller's organization.
func (s *Server) Invite(ctx context.Context, c *Caller, wanted NewInvitation) (wire.SentInvitation, error) {
	ctx, err := s.checkMember(ctx, c, account.Invite)
	if err != nil {
		return wire.SentInvitation{}, err
	}
	sent, err := s.Members.Invite(ctx, c.Who.Tenant, c.Who, wanted.Email, wanted.Role)
	return s.describeSent(sent), err
}

func (s *Server) resendInvitation(w http.ResponseWriter, r *request) error {
	sent, err := s.ResendInvitation(r.Context(), r.caller, chi.URLParam(r.Request, "invitation"))
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, sent)
}

// ResendInvitation creates a new link for an invitation. The previous link becomes invalid.
func (s *Server) ResendInvitation(ctx context.Context, c *Caller, invitation string) (wire.SentInvitation, error) {
	ctx, err := s.checkMember(ctx, c, account.Invite)
	if err != nil {
		return wire.SentInvitation{}, err
	}
	sent, err := s.Members.Resend(ctx, c.Who.Tenant, c.Who, invitation)
	return s.describeSent(sent), err
}

func (s *Server) revokeInvitation(w http.ResponseWriter, r *request) error {
	return writeNoContent(w, s.RevokeInvitation(r.Context(), r.caller, chi.URLParam(r.Request, "invitation")))
}

// RevokeInvitation revokes an invitation.
func (s *Server) RevokeInvitation(ctx context.Context, c *Caller, invitation string) error {
	ctx, err := s.checkMember(ctx, c, account.ChangeMembers)
	if err != nil {
		return err
	}
	return s.Members.Revoke(ctx, c.Who.Tenant, c.Who, invitation)
}
