package identity

import (
	"context"
	"net/http"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
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

func (s *Server) signIn(w http.ResponseWriter, r *request) error {
	var body signIn
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	ctx := r.Context()
	who, err := s.Accounts.AuthenticateIn(ctx, s.findBrowser(r.Request), body.Email, body.Password, s.Address(r.Request))
	s.logins.countAttempt(err)
	if err != nil {
		return err
	}
	factors, err := s.Factors.Summary(ctx, who.ID)
	if err != nil {
		return err
	}
	if second := factors.Second(); len(second) > 0 {
		return s.requireSecondFactor(w, who, body.OrganizationID, second)
	}
	return s.enterBy(w, r, who, body.OrganizationID, account.ByPassword)
}

// openSession opens a session, sets its cookie and returns the answer.
func (s *Server) openSession(
	w http.ResponseWriter, r *request, who account.Account, t id.Tenant, by account.Method,
) (*wire.SignedIn, error) {
	visit := s.describeVisit(r)
	visit.SignIn = by
	return s.openSessionFrom(w, r, who, t, visit)
}

func (s *Server) openSessionFrom(
	w http.ResponseWriter, r *request, who account.Account, t id.Tenant, v account.Visit,
) (*wire.SignedIn, error) {
	token, session, err := s.Accounts.OpenFrom(r.Context(), who, t, v)
	if err != nil {
		return nil, err
	}
	return s.welcomePerson(w, r, token, session)
}

// writeSignedIn writes the answer for a session that was opened or continues.
func writeSignedIn(w http.ResponseWriter, answer *wire.SignedIn, err error) error {
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, answer)
}

// describeVisit describes where a request comes from.
func (s *Server) describeVisit(r *request) account.Visit {
	return account.Visit{Address: s.Address(r.Request).String(), Program: r.UserAgent(),
		Browser: s.findBrowser(r.Request)}
}

// welcomePerson sets the cookies of a new session and of its browser, and returns the answer.
func (s *Server) welcomePerson(w http.ResponseWriter, r *request, token string,
	session *account.Session) (*wire.SignedIn, error) {
	answer, err := s.describeSession(r.Context(), session)
	if err != nil {
		return nil, err
	}
	http.SetCookie(w, s.sessionCookie(token, int(s.Accounts.SessionLifetime().Seconds())))
	return answer, s.rememberBrowser(w, r, session.Email)
}

// chooseOrganization returns the organization for a session: the requested one, or else the one that the account has
// been in longest and that accepts the method. It accepts an offered membership if that organization was requested or
// the account is in no other.
func (s *Server) chooseOrganization(
	ctx context.Context, who account.ID, requested id.Organization, by account.Method,
) (id.Tenant, error) {
	chosen, err := s.choosePlace(ctx, who, requested, by)
	if err != nil {
		return 0, err
	}
	if chosen.Offered {
		_, err = s.Accounts.Accept(ctx, chosen.Tenant, who)
	}
	return chosen.Tenant, err
}

// choosePlace is chooseOrganization without accepting an offer: it changes nothing.
func (s *Server) choosePlace(
	ctx context.Context, who account.ID, requested id.Organization, by account.Method,
) (account.Membership, error) {
	places, err := s.openPlaces(ctx, who)
	if err != nil {
		return account.Membership{}, err
	}
	return s.chooseMembership(ctx, places, requested, by)
}

// chooseMembership returns the requested one of the places, or the default; fault.Forbidden if there is none.
func (s *Server) chooseMembership(ctx context.Context, places []account.Membership,
	requested id.Organization, by account.Method) (account.Membership, error) {
	if requested == (id.Organization{}) {
		return s.chooseFirst(ctx, places, by)
	}
	t, err := s.Orgs.ByID(ctx, requested)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return account.Membership{}, err
	}
	at := slices.IndexFunc(places, func(m account.Membership) bool { return err == nil && m.Tenant == t })
	if at < 0 {
		return account.Membership{}, errNoMember()
	}
	return places[at], s.checkMethod(ctx, t, by)
}

// chooseFirst returns the first of the places, preferring those that are not only offered and whose organization
// accepts the method.
func (s *Server) chooseFirst(
	ctx context.Context, places []account.Membership, by account.Method,
) (account.Membership, error) {
	for _, m := range places {
		err := s.checkMethod(ctx, m.Tenant, by)
		if err == nil && !m.Offered {
			return m, nil
		}
		if err != nil && !fault.Is(err, fault.Forbidden) {
			return account.Membership{}, err
		}
	}
	if len(places) == 0 {
		return account.Membership{}, errNoMember()
	}
	return places[0], nil
}

func errNoMember() error { return fault.New(fault.Forbidden, "Not a member of the organization") }

// checkMethod returns fault.Forbidden if the organization does not accept sessions that were opened by the method.
func (s *Server) checkMethod(ctx context.Context, t id.Tenant, by account.Method) error {
	required, err := s.Orgs.SignIn(ctx, t)
	if err != nil {
		return err
	}
	return account.Method(required).Allow(by)
}

// openPlaces returns the places that an account may enter: no suspended ones and, if the account is unproved, no
// offered ones.
func (s *Server) openPlaces(ctx context.Context, who account.ID) ([]account.Membership, error) {
	places, err := s.Accounts.Places(ctx, who)
	if err != nil {
		return nil, err
	}
	proof, err := s.Accounts.Proof(ctx, who)
	return slices.DeleteFunc(places, func(m account.Membership) bool {
		return m.Suspended || m.Offered && proof == account.Unproved
	}), err
}

func (s *Server) describeSession(ctx context.Context, session *account.Session) (*wire.SignedIn, error) {
	places, err := s.openPlaces(ctx, session.Account)
	if err != nil {
		return nil, err
	}
	proof, err := s.Accounts.Proof(ctx, session.Account)
	if err != nil {
		return nil, err
	}
	a := &wire.SignedIn{
		Account: wire.Account{ID: string(session.Account), Email: session.Email, DisplayName: session.DisplayName,
			ApprovalMail: session.ApprovalMail, EmailProved: proof != account.Unproved},
		User: wire.User{MembershipID: session.MembershipID, Role: string(session.Role),
			Permissions: permissionNames(session.Role)},
		Organizations: make([]wire.Place, len(places)),
		MayFound:      s.Signup,
	}
	for i, m := range places {
		summary, err := s.Orgs.Summary(ctx, m.Tenant)
		if err != nil {
			return nil, err
		}
		a.Organizations[i] = wire.Place{ID: summary.ID, Slug: summary.Slug, Name: summary.Name,
			Role: string(m.Role), Offered: m.Offered}
		if m.Tenant == session.Tenant {
			a.Organization = a.Organizations[i]
		}
	}
	return a, nil
}

// permissionNames returns the names of the permissions of a role.
func permissionNames(role account.Role) []string {
	permissions := role.Permissions()
	names := make([]string, len(permissions))
	for i, p := range permissions {
		names[i] = string(p)
	}
	return names
}

// sessionCookie returns a cookie that holds a token for so many seconds; a negative number deletes the cookie.
func (s *Server) sessionCookie(token string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookie, Value: token, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
}

func (s *Server) signOut(w http.ResponseWriter, r *request) error {
	if err := s.Accounts.Close(r.Context(), s.sessionToken(r.Request)); err != nil {
		return err
	}
	http.SetCookie(w, s.sessionCookie("", -1))
	edge.WriteNoContent(w)
	return nil
}

func (s *Server) answerSession(w http.ResponseWriter, r *request) error {
	session, err := s.FindSession(r.Request)
	if err != nil {
		return err
	}
	answer, err := s.ShowSession(r.Context(), session)
	return writeSignedIn(w, answer, err)
}

// FindSession returns the session of a request's cookie; fault.Unauthorized if there is none.
func (s *Server) FindSession(r *http.Request) (*account.Session, error) {
	return s.Accounts.Session(r.Context(), s.sessionToken(r))
}

// ShowSession returns the account of a session and the organizations that it can enter.
func (s *Server) ShowSession(ctx context.Context, session *account.Session) (*wire.SignedIn, error) {
	return s.describeSession(ctx, session)
}

// sessionToken returns the session token of a request, or "" if it has none.
func (s *Server) sessionToken(r *http.Request) string {
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return ""
	}
	return c.Value
}
