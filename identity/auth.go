package identity

import (
	"context"
	"net/http"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

type credentials struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

type signIn struct {
	Email          string          `json:"email"`
	Password       string          `json:"password"`
	OrganizationID id.Organization `json:"organization_id"`
}

// signedIn is the answer to login and me: the account, its place in the organization of the
// session, and all organizations that it could enter, offered ones among them.
type signedIn struct {
	Account       shownAccount        `json:"account"`
	User          shownUser           `json:"user"`
	Organization  shownOrganization   `json:"organization"`
	Organizations []shownOrganization `json:"organizations"`
}

type shownAccount struct {
	AccountID account.ID `json:"account_id"`
	Email     string     `json:"email"`
}

type shownUser struct {
	MembershipID string       `json:"membership_id"`
	Role         account.Role `json:"role"`
}

type shownOrganization struct {
	OrganizationID id.Organization `json:"organization_id"`
	Slug           id.Slug         `json:"slug"`
	Name           string          `json:"name"`
	Role           account.Role    `json:"role"`
	Offered        bool            `json:"offered,omitzero"` // not accepted: signing in to it does that
}

func (s *Server) signIn(w http.ResponseWriter, r *request) error {
	var body signIn
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	ctx := r.Context()
	who, err := s.People.Authenticate(ctx, body.Email, body.Password, s.Address(r.Request))
	s.logins.countAttempt(err)
	if err != nil {
		return err
	}
	tenant, err := s.chooseOrganization(ctx, who.ID, body.OrganizationID)
	if err != nil {
		return err
	}
	token, session, err := s.Sessions.Open(ctx, who, tenant)
	if err != nil {
		return err
	}
	answer, err := s.describeSession(ctx, session)
	if err != nil {
		return err
	}
	http.SetCookie(w, s.sessionCookie(token, int(s.Sessions.SessionLifetime().Seconds())))
	return edge.WriteJSON(w, http.StatusOK, answer)
}

// chooseOrganization returns the organization that a session is to be in: the one that is wished,
// else the one that the account has been in longest. An offer is accepted by wishing for
// that organization, or when the account is in none.
func (s *Server) chooseOrganization(ctx context.Context, who account.ID, wished id.Organization) (id.Tenant, error) {
	places, err := s.Members.Places(ctx, who)
	if err != nil {
		return 0, err
	}
	chosen, err := s.chooseMembership(ctx, places, wished)
	if err != nil {
		return 0, err
	}
	if chosen.Offered {
		_, err = s.Members.Accept(ctx, chosen.Tenant, who)
	}
	return chosen.Tenant, err
}

// chooseMembership returns the one of places that is wished, or by default; 403 when there is none.
func (s *Server) chooseMembership(ctx context.Context, places []account.Membership,
	wished id.Organization) (account.Membership, error) {
	at := min(0, len(places)-1) // members first
	if wished != (id.Organization{}) {
		t, err := s.Organizations.ByID(ctx, wished)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return account.Membership{}, err
		}
		at = slices.IndexFunc(places, func(m account.Membership) bool { return err == nil && m.Tenant == t })
	}
	if at < 0 {
		return account.Membership{}, fault.New(fault.Forbidden, "Not a member of the organization")
	}
	return places[at], nil
}

func (s *Server) describeSession(ctx context.Context, session *account.Session) (*signedIn, error) {
	places, err := s.Members.Places(ctx, session.Account)
	if err != nil {
		return nil, err
	}
	a := &signedIn{
		Account:       shownAccount{AccountID: session.Account, Email: session.Email},
		User:          shownUser{MembershipID: session.MembershipID, Role: session.Role},
		Organizations: make([]shownOrganization, len(places)),
	}
	for i, m := range places {
		summary, err := s.Organizations.Summary(ctx, m.Tenant)
		if err != nil {
			return nil, err
		}
		a.Organizations[i] = shownOrganization{OrganizationID: summary.ID, Slug: summary.Slug, Name: summary.Name,
			Role: m.Role, Offered: m.Offered}
		if m.Tenant == session.Tenant {
			a.Organization = a.Organizations[i]
		}
	}
	return a, nil
}

// sessionCookie holds a token for some seconds; fewer than one take it away.
func (s *Server) sessionCookie(token string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: CookieName, Value: token, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
}

func (s *Server) signOut(w http.ResponseWriter, r *request) error {
	if err := s.Sessions.Close(r.Context(), sessionToken(r.Request)); err != nil {
		return err
	}
	http.SetCookie(w, s.sessionCookie("", -1))
	edge.WriteNoContent(w)
	return nil
}

func (s *Server) answerSession(w http.ResponseWriter, r *request) error {
	session, err := s.Sessions.Session(r.Context(), sessionToken(r.Request))
	if err != nil {
		return err
	}
	answer, err := s.describeSession(r.Context(), session)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, answer)
}

// sessionToken returns the session token of a request, "" when it has none.
func sessionToken(r *http.Request) string {
	c, err := r.Cookie(CookieName)
	if err != nil {
		return ""
	}
	return c.Value
}
