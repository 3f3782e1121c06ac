package identity

import (
	"context"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
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

// admitMember returns the session of a request for a path of its organization, if the role of the session has the
// permission. Any other organization is answered like one that does not exist.
func (s *Server) admitMember(r *http.Request, p account.Permission) (*account.Session, error) {
	if err := s.origin.Check(r); err != nil {
		return nil, fault.Wrap(fault.Forbidden, "Request of another origin", err)
	}
	who, err := s.Accounts.Session(r.Context(), s.sessionToken(r))
	if err != nil {
		return nil, err
	}
	organization, err := id.ParseOrganization(chi.URLParam(r, "organization"))
	if err != nil {
		return nil, fault.Wrap(fault.NotFound, "Not found", err)
	}
	tenant, err := s.Orgs.ByID(r.Context(), organization)
	if err != nil {
		return nil, err
	}
	if tenant != who.Tenant {
		return nil, fault.New(fault.NotFound, "Not found")
	}
	return who, s.checkMember(r.Context(), who, p)
}

// checkMember returns an error unless the role of a session has a permission in the organization of the session.
func (s *Server) checkMember(ctx context.Context, who *account.Session, p account.Permission) error {
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
	found, err := s.readMembers(r.Context(), r.who, r.URL.Query())
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, found)
}

// ListMembers returns a page of the members of the session's organization.
func (s *Server) ListMembers(ctx context.Context, who *account.Session, query url.Values) (wire.Members, error) {
	if err := s.checkMember(ctx, who, account.Read); err != nil {
		return wire.Members{}, err
	}
	return s.readMembers(ctx, who, query)
}

func (s *Server) readMembers(ctx context.Context, who *account.Session, query url.Values) (wire.Members, error) {
	p, err := edge.ParsePage(query)
	if err != nil {
		return wire.Members{}, err
	}
	found, err := s.Members.List(ctx, who.Tenant, p.After, p.Limit+1)
	if err != nil {
		return wire.Members{}, err
	}
	var body wire.Members
	body.Members, body.Next = edge.CutPage(p, found, func(m member.Listed) string { return m.ID }, describeMember)
	return body, nil
}

func (s *Server) changeMember(w http.ResponseWriter, r *request) error {
	var body struct {
		Role      *account.Role `json:"role"`
		Suspended *bool         `json:"suspended"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	changed, err := s.Members.Change(r.Context(), r.who.Tenant, r.who, chi.URLParam(r.Request, "membership"),
		member.Change{Role: body.Role, Suspended: body.Suspended})
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, describeMember(changed))
}

// removeMember removes a member or lets one leave, whose session then ends.
func (s *Server) removeMember(w http.ResponseWriter, r *request) error {
	membership := chi.URLParam(r.Request, "membership")
	if err := s.Members.Remove(r.Context(), r.who.Tenant, r.who, membership); err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}

func describeInvitation(i member.Invitation) wire.Invitation {
	return wire.Invitation{InvitationID: i.ID, Email: i.Email, Role: string(i.Role), CreatedAt: i.CreatedAt,
		CreatedBy: string(i.CreatedBy), ExpiresAt: i.ExpiresAt}
}

func (s *Server) listInvitations(w http.ResponseWriter, r *request) error {
	found, err := s.readInvitations(r.Context(), r.who, r.URL.Query())
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, found)
}

// ListInvitations returns a page of the open invitations of the session's organization.
func (s *Server) ListInvitations(ctx context.Context, who *account.Session, query url.Values) (wire.Invitations, error) {
	if err := s.checkMember(ctx, who, account.ChangeMembers); err != nil {
		return wire.Invitations{}, err
	}
	return s.readInvitations(ctx, who, query)
}

func (s *Server) readInvitations(ctx context.Context, who *account.Session, query url.Values) (wire.Invitations, error) {
	p, err := edge.ParsePage(query)
	if err != nil {
		return wire.Invitations{}, err
	}
	found, err := s.Members.ListInvitations(ctx, who.Tenant, p.After, p.Limit+1)
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

func (s *Server) invitePerson(w http.ResponseWriter, r *request) error {
	var body struct {
		Email string       `json:"email"`
		Role  account.Role `json:"role"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	sent, err := s.Members.Invite(r.Context(), r.who.Tenant, r.who, body.Email, body.Role)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, s.describeSent(sent))
}

func (s *Server) resendInvitation(w http.ResponseWriter, r *request) error {
	invitation := chi.URLParam(r.Request, "invitation")
	sent, err := s.Members.Resend(r.Context(), r.who.Tenant, r.who, invitation)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, s.describeSent(sent))
}

func (s *Server) revokeInvitation(w http.ResponseWriter, r *request) error {
	invitation := chi.URLParam(r.Request, "invitation")
	if err := s.Members.Revoke(r.Context(), r.who.Tenant, r.who, invitation); err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}
