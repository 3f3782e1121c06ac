package identity

import (
	"context"
	"net/http"
	"slices"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/wire"
)

// Credentials sign a person in. OrganizationID is the organization to enter, or zero for the default.
type Credentials struct {
	Email          string          `json:"email"`
	Password       string          `json:"password"`
	OrganizationID id.Organization `json:"organization_id"`
}

func (s *Server) signIn(w http.ResponseWriter, r *request) error {
	var body Credentials
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	in, second, err := s.SignIn(r.Context(), r.caller, body)
	if err == nil && second != nil {
		return edge.WriteJSON(w, http.StatusOK, second)
	}
	return writeSignedIn(w, in, err)
}

// SignIn signs a person in with a password. If the account has second factors, the caller gets no session but a cookie
// with which one of them completes the sign-in.
func (s *Server) SignIn(ctx context.Context, c *Caller, with Credentials) (*wire.SignedIn, *wire.SecondFactor, error) {
	who, err := s.Accounts.AuthenticateIn(ctx, s.findBrowser(c), with.Email, with.Password, s.Address(c.request))
	s.logins.countAttempt(err)
	if err != nil {
		return nil, nil, err
	}
	factors, err := s.Factors.Summary(ctx, who.ID)
	if err != nil {
		return nil, nil, err
	}
	if second := factors.Second(); len(second) > 0 {
		cookie, err := s.Factors.BeginSecond(who, with.OrganizationID)
		if err != nil {
			return nil, nil, err
		}
		c.setCookie(s.flowCookie(secondCookie, cookie, int(factor.Life.Seconds())))
		return nil, &wire.SecondFactor{SecondFactor: second}, nil
	}
	in, err := s.enterBy(ctx, c, who, with.OrganizationID, account.ByPassword)
	return in, nil, err
}

// enterBy completes a sign-in to the requested organization.
func (s *Server) enterBy(
	ctx context.Context, c *Caller, who account.Account, requested id.Organization, by account.Method,
) (*wire.SignedIn, error) {
	who, by, err := s.finishLink(ctx, c, who, by)
	if err != nil {
		return nil, err
	}
	tenant, err := s.chooseOrganization(ctx, who.ID, requested, by)
	if err != nil {
		return nil, err
	}
	return s.openSession(ctx, c, who, tenant, by)
}

// openSession opens a session, sets its cookie and returns the answer.
func (s *Server) openSession(
	ctx context.Context, c *Caller, who account.Account, t id.Tenant, by account.Method,
) (*wire.SignedIn, error) {
	visit := s.describeVisit(c)
	visit.SignIn = by
	return s.openSessionFrom(ctx, c, who, t, visit)
}

func (s *Server) openSessionFrom(
	ctx context.Context, c *Caller, who account.Account, t id.Tenant, v account.Visit,
) (*wire.SignedIn, error) {
	token, session, err := s.Accounts.OpenFrom(ctx, who, t, v)
	if err != nil {
		return nil, err
	}
	return s.welcomePerson(ctx, c, token, session)
}

// writeSignedIn writes the answer for a session that was opened or continues.
func writeSignedIn(w http.ResponseWriter, answer *wire.SignedIn, err error) error {
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, answer)
}

// writeNoContent answers with 204 unless err is set.
func writeNoContent(w http.ResponseWriter, err error) error {
	if err == nil {
		edge.WriteNoContent(w)
	}
	return err
}

// describeVisit describes where a call comes from.
func (s *Server) describeVisit(c *Caller) account.Visit {
	return account.Visit{Address: s.Address(c.request).String(), Program: c.request.UserAgent(),
		Browser: s.findBrowser(c)}
}

// welcomePerson gives the caller a new session: it sets the cookies of the session and of its browser, and returns the
// answer.
func (s *Server) welcomePerson(
	ctx context.Context, c *Caller, token string, session *account.Session,
) (*wire.SignedIn, error) {
	answer, err := s.describeSession(ctx, session)
	if err != nil {
		return nil, err
	}
	c.setCookie(s.sessionCookie(token, int(s.Accounts.SessionLifetime().Seconds())))
	c.token, c.Who, c.right = token, session, ""
	return answer, s.rememberBrowser(c, session.Email)
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
	permissions, err := s.permissionNames(ctx, session)
	if err != nil {
		return nil, err
	}
	a := &wire.SignedIn{
		Account: wire.Account{ID: string(session.Account), Email: session.Email, DisplayName: session.DisplayName,
			ApprovalMail: session.ApprovalMail, WeeklyMail: session.WeeklyMail, TimesInUTC: session.TimesInUTC, EmailProved: proof != account.Unproved},
		User: wire.User{MembershipID: session.MembershipID, Role: string(session.Role),
			Permissions: permissions},
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

// permissionNames returns the names of the permissions of a session: those of its role, and those of a deputy while the
// member votes in place of another one.
func (s *Server) permissionNames(ctx context.Context, session *account.Session) ([]string, error) {
	permissions := session.Role.Permissions()
	if !session.Role.May(account.Vote) && session.Tenant != id.Service {
		represents, err := s.Members.Represents(ctx, session.Tenant, session.Account)
		if err != nil {
			return nil, err
		}
		if represents != "" {
			permissions = account.WithDeputy(permissions)
		}
	}
	names := make([]string, len(permissions))
	for i, p := range permissions {
		names[i] = string(p)
	}
	return names, nil
}

// sessionCookie returns a cookie that holds a token for so many seconds; a negative number deletes the cookie.
func (s *Server) sessionCookie(token string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookie, Value: token, Path: "/", MaxAge: seconds,
		HttpOnly: true, Secure: s.secure, SameSite: http.SameSiteLaxMode,
	}
}

func (s *Server) signOut(w http.ResponseWriter, r *request) error {
	return writeNoContent(w, s.SignOut(r.Context(), r.caller))
}

// SignOut ends the session of a caller, if there is one.
func (s *Server) SignOut(ctx context.Context, c *Caller) error {
	if err := s.Accounts.Close(ctx, c.token); err != nil {
		return err
	}
	c.setCookie(s.sessionCookie("", -1))
	c.token, c.Who, c.right = "", nil, ""
	return nil
}

func (s *Server) answerSession(w http.ResponseWriter, r *request) error {
	answer, err := s.ShowSession(r.Context(), r.caller)
	return writeSignedIn(w, answer, err)
}

// ShowSession returns the account of a session and the organizations that it can enter.
func (s *Server) ShowSession(ctx context.Context, c *Caller) (*wire.SignedIn, error) {
	who, err := s.FindSession(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.describeSession(ctx, who)
}
