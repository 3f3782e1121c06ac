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
func (s *Server) findInvitation(ctx context.Context, c *Caller, text string) (invitedTo, error) {
	if text == "" {
		return invitedTo{}, errRequired("token")
	}
	undo, err := s.tokenAttempts.countAttempt(s.Address(c.request), s.Now())
	if err != nil {
		return invitedTo{}, err
	}
	found, err := s.readInvitation(ctx, text)
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

func (s *Server) previewInvitation(w http.ResponseWriter, r *request) error {
	held, err := s.PreviewInvitation(r.Context(), r.caller, r.Header.Get(tokenHeader))
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, held)
}

// PreviewInvitation shows an invitation to the holder of its token.
func (s *Server) PreviewInvitation(ctx context.Context, c *Caller, token string) (wire.HeldInvitation, error) {
	if token == "" {
		return wire.HeldInvitation{}, errRequired(tokenHeader)
	}
	found, err := s.findInvitation(ctx, c, token)
	if err != nil {
		return wire.HeldInvitation{}, err
	}
	summary, err := s.Orgs.Summary(ctx, found.Tenant)
	if err != nil {
		return wire.HeldInvitation{}, err
	}
	return wire.HeldInvitation{ID: summary.ID, Slug: summary.Slug, Name: summary.Name, Role: string(found.Role),
		Email: found.Email, AccountExists: found.known, ExpiresAt: found.ExpiresAt}, nil
}

// Acceptance accepts an invitation by a password, by a passkey, or by the caller's session.
type Acceptance struct {
	Token       string `json:"token"`
	DisplayName string `json:"display_name"`
	Password    string `json:"password"`

	// Passkey belongs to the account of the invited address, or to the account that the acceptance creates.
	Passkey *NewPasskey `json:"passkey"`
}

func (s *Server) acceptInvitation(w http.ResponseWriter, r *request) error {
	var body Acceptance
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	answer, err := s.AcceptInvitation(r.Context(), r.caller, body)
	return writeSignedIn(w, answer, err)
}

// AcceptInvitation makes the holder of a token a member and opens a session in the organization.
func (s *Server) AcceptInvitation(ctx context.Context, c *Caller, by Acceptance) (*wire.SignedIn, error) {
	found, err := s.findInvitation(ctx, c, by.Token)
	if err != nil {
		return nil, err
	}
	if err := s.Edge.CheckOwner(ctx, found.Tenant); err != nil {
		return nil, err
	}
	if by.Passkey == nil { // the challenge of a passkey can be used only once, so a passkey's request is not repeated
		c.moves = found.Tenant
	}
	if err := s.checkActive(ctx, found.Tenant); err != nil {
		return nil, err
	}
	if by.Password != "" && by.Passkey != nil {
		return nil, errTwoWays()
	}
	if by.Password == "" && by.Passkey == nil {
		return s.acceptSignedIn(ctx, c, &found)
	}
	who, method, err := s.ensureInvited(ctx, c, &found, by)
	if err != nil {
		return nil, err
	}
	if err := s.Members.Accept(ctx, found.Tenant, who, found.token); err != nil {
		return nil, err
	}
	return s.openSession(ctx, c, who, found.Tenant, method)
}

// acceptSignedIn accepts the invitation for the account of the session, which then continues in the organization. A
// mailed token takes over an unproved account, so that account needs a new password or passkey.
func (s *Server) acceptSignedIn(ctx context.Context, c *Caller, found *invitedTo) (*wire.SignedIn, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return nil, err
	}
	if !found.known && session.Email == found.Email {
		return nil, account.ErrNewPassword()
	}
	who := account.Account{ID: session.Account, Email: session.Email}
	if err := s.Members.Accept(ctx, found.Tenant, who, found.token); err != nil {
		return nil, err
	}
	return s.enterOrganization(ctx, c, found.Tenant)
}

// ensureInvited returns the account of the invited address after checking its password or passkey. It creates the
// account if there is none.
func (s *Server) ensureInvited(
	ctx context.Context, c *Caller, found *invitedTo, body Acceptance,
) (who account.Account, by account.Method, err error) {
	if err := account.CheckDisplayName(body.DisplayName); err != nil {
		return account.Account{}, "", err
	}
	if body.Passkey != nil {
		who, err = s.ensureByPasskey(ctx, c, found, body)
		return who, account.ByPasskey, err
	}
	who, err = s.ensureByPassword(ctx, c, found, body)
	return who, account.ByPassword, err
}

// ensureByPasskey returns the account of a known passkey. Otherwise it takes over an unproved account of the address,
// or creates an account with the new passkey.
func (s *Server) ensureByPasskey(
	ctx context.Context, c *Caller, found *invitedTo, body Acceptance,
) (account.Account, error) {
	if found.known {
		return s.usePasskey(ctx, c, body.Passkey.Credential)
	}
	made, err := s.checkNewPasskey(c, body.Passkey)
	if err != nil {
		return account.Account{}, err
	}
	visit := s.describeVisit(c)
	if found.Mailed {
		switch taken, err := s.Accounts.TakeOverByMail(ctx, found.Email, visit); {
		case err == nil:
			who, err := s.Factors.AddFirst(ctx, taken, made, visit)
			s.logRefusal(newPasskeyRefused, c, err)
			if err == nil {
				err = s.nameInvited(ctx, &who, body.DisplayName)
			}
			return who, err
		case !fault.Is(err, fault.NotFound):
			return account.Account{}, err
		}
	}
	who, err := s.Factors.Create(ctx, found.Email, body.DisplayName, found.Claim(), made)
	s.logRefusal(newPasskeyRefused, c, err)
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

func (s *Server) ensureByPassword(
	ctx context.Context, c *Caller, found *invitedTo, body Acceptance,
) (account.Account, error) {
	if !found.known {
		summary, err := s.Orgs.Summary(ctx, found.Tenant)
		if err != nil {
			return account.Account{}, err
		}
		who, made, err := s.Accounts.EnsureInvited(ctx, found.Email, body.Password, found.Claim(), s.describeVisit(c),
			summary.Name)
		if err == nil && made {
			err = s.nameInvited(ctx, &who, body.DisplayName)
		}
		if err != nil || made {
			return who, err
		}
	}
	who, err := s.Accounts.AuthenticateIn(ctx, s.findBrowser(c), found.Email, body.Password, s.Address(c.request))
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

// enterOrganization moves the session of a caller to another organization, under a new token.
func (s *Server) enterOrganization(ctx context.Context, c *Caller, t id.Tenant) (*wire.SignedIn, error) {
	token, session, err := s.Accounts.SwitchSession(ctx, c.token, t)
	if err != nil {
		return nil, err
	}
	return s.welcomePerson(ctx, c, token, session)
}

func (s *Server) switchOrganization(w http.ResponseWriter, r *request) error {
	var body struct {
		OrganizationID id.Organization `json:"organization_id"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	answer, err := s.SwitchOrganization(r.Context(), r.caller, body.OrganizationID)
	return writeSignedIn(w, answer, err)
}

// SwitchOrganization moves a session to another organization of its account. This accepts an offered membership, as
// signing in to the organization does.
func (s *Server) SwitchOrganization(ctx context.Context, c *Caller, to id.Organization) (*wire.SignedIn, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return nil, err
	}
	if to == (id.Organization{}) {
		return nil, errRequired("organization_id")
	}
	tenant, err := s.chooseOrganization(ctx, session.Account, to, session.SignIn)
	if err != nil {
		return nil, err
	}
	return s.enterOrganization(ctx, c, tenant)
}
