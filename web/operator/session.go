package operator

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/identity"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/web/page"
)

const (
	signInPage  = home + "/signin"
	signOutPage = home + "/signout"

	cookieName = "agentledger-operator"

	maxSessions = 100
	sessionTime = time.Hour
)

// sessions are the operator's sessions, by the hashes of their tokens. Its methods may be called concurrently.
type sessions struct {
	now    func() time.Time
	open   *cache.Map[[sha256.Size]byte, session]
	origin *http.CrossOriginProtection
}

// session is a sign-in that expires.
type session struct {
	secret string
	ends   time.Time
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, origin: http.NewCrossOriginProtection(),
		open: cache.NewMap(cache.MapOptions[[sha256.Size]byte, session]{Limit: maxSessions})}
}

// begin begins a session with a verified secret and returns its token.
func (s *sessions) begin(secret string) (token string) {
	token = rand.Text()
	s.open.Put(sha256.Sum256([]byte(token)), session{secret, s.now().Add(sessionTime)})
	return token
}

// secretFor returns the secret of the session with a token, or "" if there is none.
func (s *sessions) secretFor(token string) string {
	key := sha256.Sum256([]byte(token))
	found, _ := s.open.Get(key)
	if !s.now().Before(found.ends) {
		s.open.Delete(key)
		return ""
	}
	return found.secret
}

func (s *sessions) end(token string) { s.open.Delete(sha256.Sum256([]byte(token))) }

// admit checks the secret of the request's session. It ignores a secret in the request itself, unless another node has
// passed the request with the secret of a session there. The node that owns an organization serves its pages.
func (p *pages) admit(r *page.Request) error {
	secret := ""
	if p.Passed != nil && p.Passed(r.Context()) {
		secret = r.Header.Get(identity.SecretHeader)
	}
	r.Header.Del(identity.SecretHeader)
	if err := p.sessions.origin.Check(r.Request); err != nil {
		return fault.Wrap(fault.Forbidden, "Request of another origin", err)
	}
	secret = cmp.Or(secret, p.sessions.secretFor(tokenFrom(r)))
	caller := p.Identity.NewCaller(r.Request, r.SetCookie)
	r.Visit = caller
	if secret != "" {
		r.Reader = "The operator"
	}
	switch {
	case r.IsOpen():
		return nil
	case secret == "":
		return fault.New(fault.Unauthorized, "Not signed in")
	}
	if err := p.Identity.CheckSecret(r.Request, secret); err != nil {
		return err
	}
	r.Header.Set(identity.SecretHeader, secret) // for the node that the request may be passed to
	if name := r.PathParameter("organization"); name != "" {
		return p.Identity.CheckOperated(r.Context(), caller, name)
	}
	return nil
}

// change calls a form as a call of the operator.
func (p *pages) change(r *page.Request, form func() error) error {
	return p.Identity.ServeOperator(r.Context(), r.Visit.(*identity.Caller), func(ctx context.Context) error {
		r.Request = r.WithContext(ctx)
		return form()
	})
}

// tokenFrom returns the token in the request's cookie, or "" if there is none.
func tokenFrom(r *page.Request) string {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return ""
	}
	return c.Value
}

// signInView is the content of the sign-in page.
type signInView struct{ Return string }

func showSignIn(r *page.Request) (any, error) { return signInView{r.ReturnPath()}, nil }

// signIn begins a session if the secret is right.
func (p *pages) signIn(r *page.Request) (page.Outcome, error) {
	secret := r.Value("secret")
	if err := p.Identity.CheckSecret(r.Request, secret); err != nil {
		return page.Outcome{}, err
	}
	p.sessions.end(tokenFrom(r))
	r.SetCookie(newCookie(r, p.sessions.begin(secret), int(sessionTime/time.Second)))
	return page.GoTo(r.ReturnPath(), ""), nil
}

func (p *pages) signOut(r *page.Request) (page.Outcome, error) {
	p.sessions.end(tokenFrom(r))
	r.SetCookie(newCookie(r, "", -1))
	return page.GoTo(r.Address(signInPage), "signed-out"), nil
}

// newCookie returns the cookie with a token. It is Secure if the browser is known to use TLS: the listener itself does
// not.
func newCookie(r *page.Request, token string, seconds int) *http.Cookie {
	return &http.Cookie{Name: cookieName, Value: token, Path: home, MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
		Secure:   r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")}
}
