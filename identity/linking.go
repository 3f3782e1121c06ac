package identity

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/oidc"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

const (
	// linkCookie names the cookie of a person whom a provider authenticated and who must still prove a factor of the
	// account.
	linkCookie = "link"
	// linkContext binds the sealed cookie to its use.
	linkContext = "oidc-link"
)

// pendingLink names a person whom a provider authenticated, and the proved account of that person's address. The
// browser holds it, sealed; the next sign-in to the account in that browser links the two.
type pendingLink struct {
	Provider   string     `json:"provider"`
	Issuer     string     `json:"issuer"`
	Subject    string     `json:"subject"`
	Email      string     `json:"email"`
	Account    account.ID `json:"account"`
	Generation uint64     `json:"generation"`
	Ends       id.Instant `json:"ends"`
}

// holdLink sets the cookie of a link that waits until a factor of the account is proved.
func (s *Server) holdLink(c *Caller, person oidc.Person, who account.Account) error {
	if s.Browsers == nil {
		return nil
	}
	cookie, err := seal.Cookie(s.Browsers, linkContext, pendingLink{Provider: person.Provider, Issuer: person.Issuer,
		Subject: person.Subject, Email: person.Email, Account: who.ID, Generation: who.Generation(),
		Ends: id.InstantOf(s.Now().Add(oidc.FlowTime))})
	if err == nil {
		c.setCookie(s.flowCookie(linkCookie, cookie, int(oidc.FlowTime.Seconds())))
	}
	return err
}

// finishLink links the person named in the browser's cookie with an account whose factor was just proved. It returns
// the session's method: the provider's if it linked the two, otherwise by.
func (s *Server) finishLink(
	ctx context.Context, c *Caller, who account.Account, by account.Method,
) (account.Account, account.Method, error) {
	var p pendingLink
	cookie := s.readCookie(c, linkCookie)
	if cookie == "" || s.Browsers == nil || seal.OpenCookie(s.Browsers, linkContext, cookie, &p) != nil ||
		p.Account != who.ID || id.InstantOf(s.Now()) >= p.Ends || p.Generation != who.Generation() {
		return who, by, nil
	}
	linked, err := s.Accounts.LinkSubject(ctx,
		account.Subject{Issuer: p.Issuer, Name: p.Subject, Email: p.Email}, who, s.describeVisit(c))
	if err != nil {
		return who, by, err
	}
	c.setCookie(s.flowCookie(linkCookie, "", -1))
	if linked.ID != who.ID { // the person was linked to another account in the meantime
		return who, by, nil
	}
	return linked, account.ByProvider + account.Method(p.Provider), nil
}

// findSubject returns the account of a person whom a provider authenticated. If the account has another factor, the
// person must have proved it in the browser's session, or must prove it at the next sign-in.
func (s *Server) findSubject(ctx context.Context, c *Caller, person oidc.Person) (account.Account, error) {
	subject := account.Subject{Issuer: person.Issuer, Name: person.Subject, Email: person.Email}
	visit := s.describeVisit(c)
	who, err := s.Accounts.AuthenticateSubject(ctx, subject, visit)
	if fault.Is(err, fault.Forbidden) && person.NoEmail != nil {
		return who, person.NoEmail
	}
	if err == nil || fault.Of(err).Code != linkRequired {
		return who, err
	}
	if s.hasRecentSession(ctx, c, who.ID) {
		return s.Accounts.LinkSubject(ctx, subject, who, visit)
	}
	if held := s.holdLink(c, person, who); held != nil {
		return account.Account{}, held
	}
	return account.Account{}, err
}

// linkRequired is the error code of a sign-in at a provider that needs a factor of the account as well.
const linkRequired = "link_required"

// hasRecentSession reports whether the browser has a session of the account with a recently proved factor.
func (s *Server) hasRecentSession(ctx context.Context, c *Caller, who account.ID) bool {
	session, err := s.FindSession(ctx, c)
	return err == nil && session.Account == who && session.CheckFactor() == nil
}
