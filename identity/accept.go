package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
	"github.com/agentledger/agentledger/internal/wire"
)

// tokenHeader carries the token of an invitation in a preview: in the query, the token would appear in logs.
const tokenHeader = "X-Invitation-Token"

// findInvitation returns the invitation of a token and its organization. It counts wrong tokens by network.
func (s *Server) findInvitation(r *request, text string) (invitedTo, error) {
	if text == "" {
		return invitedTo{}, errRequired("token")
	}
	undo, err := s.tokenAttempts.countAttempt(s.Address(r.Request), s.Now())
	if err != nil {
		return invitedTo{}, err
	}
	found, err := s.readInvitation(r.Context(), text)
	if !fault.Is(err, fault.NotFound) {
		undo()
	}
	return found, err
}

func (s *Server) readInvitation(ctx context.Context, text string) (found invitedTo, err error) {
	if found.token, err = member.ParseToken(text); err != nil {
		return found, err
	}
	tenant, err := s.Orgs.ByID(ctx, found.token.Organization)
	if fault.Is(err, fault.NotFound) {
		err = member.ErrNoInvitation()
	}
	if err != nil {
		return found, err
	}
	found.Invitation, found.known, err = s.Members.FindInvitation(ctx, tenant, found.token)
	return found, err
}

// invitedTo is an invitation as the holder of its token found it.
type invitedTo struct {
	member.Invitation
	token member.Token
	known bool // the address has an account, which the token does not take over
}

// previewInvitation shows an invitation to the holder of its token.
func (s *Server) previewInvitation(w http.ResponseWriter, r *request) error {
	token := r.Header.Get(tokenHeader)
	if token == "" {
		return errRequired(tokenHeader)
	}
	found, err := s.findInvitation(r, token)
	if err != nil {
		return err
	}
	summary, err := s.Orgs.Summary(r.Context(), found.Tenant)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, wire.HeldInvitation{ID: summary.ID, Slug: summary.Slug, Name: summary.Name,
		Role: string(found.Role), Email: found.Email, AccountExists: found.known, ExpiresAt: found.ExpiresAt})
}

type acceptance struct {
	Token       string `json:"token"`
	DisplayName string `json:"display_name"`
	Password    string `json:"password"`

	// Passkey belongs to the account of the invited address, or to the account that the acceptance creates.
	Passkey *newPasskey `json:"passkey"`
}

// acceptInvitation makes the holder of a token a member and opens a session in the organization.
func (s *Server) acceptInvitation(w http.ResponseWriter, r *request) error {
	var body acceptance
	text, err := edge.ReadBody(r.Request, r.body)
	if err == nil {
		err = edge.DecodeStrict(text, &body)
	}
	if err != nil {
		return err
	}
	found, err := s.findInvitation(r, body.Token)
	if err != nil {
		return err
	}
	if err := s.Edge.CheckOwnerByBody(r.Context(), found.Tenant, text); err != nil {
		return err
	}
	if body.Passkey == nil { // the challenge of a passkey can be used only once, so a passkey's request is not repeated
		r.moves = found.Tenant
	}
	if err := s.checkActive(r.Context(), found.Tenant); err != nil {
		return err
	}
	if body.Password != "" && body.Passkey != nil {
		return errTwoWays()
	}
	if body.Password == "" && body.Passkey == nil {
		return s.acceptSignedIn(w, r, &found)
	}
	who, by, err := s.ensureInvited(r, &found, body)
	if err != nil {
		return err
	}
	if err := s.Members.Accept(r.Context(), found.Tenant, who, found.token); err != nil {
		return err
	}
	answer, err := s.openSession(w, r, who, found.Tenant, by)
	return writeSignedIn(w, answer, err)
}

// acceptSignedIn accepts the invitation for the account of the session, which then continues in the organization. A
// mailed token takes over an unproved account, so that account needs a new password or passkey.
func (s *Server) acceptSignedIn(w http.ResponseWriter, r *request, found *invitedTo) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	if !found.known && session.Email == found.Email {
		return account.ErrNewPassword()
	}
	who := account.Account{ID: session.Account, Email: session.Email}
	if err := s.Members.Accept(r.Context(), found.Tenant, who, found.token); err != nil {
		return err
	}
	return s.enterOrganization(w, r, found.Tenant)
}

// ensureInvited returns the account of the invited address after checking its password or passkey. It creates the
// account if there is none.
func (s *Server) ensureInvited(
	r *request, found *invitedTo, body acceptance,
) (who account.Account, by account.Method, err error) {
	if err := account.CheckDisplayName(body.DisplayName); err != nil {
		return account.Account{}, "", err
	}
	if body.Passkey != nil {
		who, err = s.ensureByPasskey(r, found, body)
		return who, account.ByPasskey, err
	}
	who, err = s.ensureByPassword(r, found, body)
	return who, account.ByPassword, err
}

// ensureByPasskey returns the account of a known passkey. Otherwise it takes over an unproved account of the address,
// or creates an account with the new passkey.
func (s *Server) ensureByPasskey(r *request, found *invitedTo, body acceptance) (account.Account, error) {
	if found.known {
		return s.usePasskey(r, body.Passkey.Credential)
	}
	made, err := s.checkNewPasskey(r, body.Passkey)
	if err != nil {
		return account.Account{}, err
	}
	ctx, visit := r.Context(), s.describeVisit(r)
	if found.Mailed {
		switch taken, err := s.Accounts.TakeOverByMail(ctx, found.Email, visit); {
		case err == nil:
			who, err := s.Factors.AddFirst(ctx, taken, made, visit)
			s.logRefusal(newPasskeyRefused, r, err)
			if err == nil {
				err = s.nameInvited(ctx, &who, body.DisplayName)
			}
			return who, err
		case !fault.Is(err, fault.NotFound):
			return account.Account{}, err
		}
	}
	who, err := s.Factors.Create(ctx, found.Email, body.DisplayName, found.Claim(), made)
	s.logRefusal(newPasskeyRefused, r, err)
	return who, err
}

// nameInvited sets the display name of an account that was just created or taken over, unless the name is empty.
func (s *Server) nameInvited(ctx context.Context, who *account.Account, name string) error {
	if name == "" {
		return nil
	}
	who.DisplayName = name
	return s.Accounts.SetWishes(ctx, who.ID, account.Wishes{DisplayName: &name})
}

func (s *Server) ensureByPassword(r *request, found *invitedTo, body acceptance) (account.Account, error) {
	ctx := r.Context()
	if !found.known {
		summary, err := s.Orgs.Summary(ctx, found.Tenant)
		if err != nil {
			return account.Account{}, err
		}
		who, made, err := s.Accounts.EnsureInvited(ctx, found.Email, body.Password, found.Claim(), s.describeVisit(r),
			summary.Name)
		if err == nil && made {
			err = s.nameInvited(ctx, &who, body.DisplayName)
		}
		if err != nil || made {
			return who, err
		}
	}
	who, err := s.Accounts.AuthenticateIn(ctx, s.findBrowser(r.Request), found.Email, body.Password, s.Address(r.Request))
	s.logins.countAttempt(err)
	if err != nil {
		return account.Account{}, err
	}
	return who, s.checkPasswordAlone(ctx, who)
}

// checkPasswordAlone returns an error if the account's password does not suffice to sign in.
func (s *Server) checkPasswordAlone(ctx context.Context, who account.Account) error {
	factors, err := s.Factors.Summary(ctx, who.ID)
	if err == nil && len(factors.Second()) > 0 {
		err = &fault.Error{Kind: fault.Unauthorized, Code: "second_factor",
			Message: "The account has a second factor: sign in first, or send a passkey"}
	}
	return err
}

// enterOrganization moves the session of a request to another organization, under a new token.
func (s *Server) enterOrganization(w http.ResponseWriter, r *request, t id.Tenant) error {
	token, session, err := s.Accounts.SwitchSession(r.Context(), s.sessionToken(r.Request), t)
	if err != nil {
		return err
	}
	answer, err := s.welcomePerson(w, r, token, session)
	return writeSignedIn(w, answer, err)
}

// switchOrganization moves a session to another organization of its account. This accepts an offered membership, as
// signing in to the organization does.
func (s *Server) switchOrganization(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	var body struct {
		OrganizationID id.Organization `json:"organization_id"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	if body.OrganizationID == (id.Organization{}) {
		return errRequired("organization_id")
	}
	tenant, err := s.chooseOrganization(r.Context(), session.Account, body.OrganizationID, session.SignIn)
	if err != nil {
		return err
	}
	return s.enterOrganization(w, r, tenant)
}
