package operator

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/web/page"
)

const (
	signInPage  = home + "/signin"
	signOutPage = home + "/signout"

	secretHeader = "X-Platform-Secret"
	cookieName   = "agentledger-operator"

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

// admit gives the calls of a page the secret of the request's session. It ignores a secret in the request itself.
func (s *sessions) admit(r *page.Request) error {
	r.Header.Del(secretHeader)
	if err := s.origin.Check(r.Request); err != nil {
		return &page.Refusal{Status: http.StatusForbidden, Message: "Request of another origin"}
	}
	secret := s.secretFor(tokenFrom(r))
	switch {
	case secret != "":
		r.Reader = "The operator"
		r.Header.Set(secretHeader, secret)
	case !r.IsOpen():
		return &page.Refusal{Status: http.StatusUnauthorized, Message: "Not signed in"}
	}
	return nil
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

// signIn begins a session if a call with the secret succeeds.
func (s *sessions) signIn(r *page.Request) (page.Outcome, error) {
	secret := r.Value("secret")
	err := r.ReadWithHeader(clockCall, secretHeader, secret, nil)
	if err != nil {
		return page.Outcome{}, err
	}
	s.end(tokenFrom(r))
	r.SetCookie(newCookie(r, s.begin(secret), int(sessionTime/time.Second)))
	return page.GoTo(r.ReturnPath(), ""), nil
}

func (s *sessions) signOut(r *page.Request) (page.Outcome, error) {
	s.end(tokenFrom(r))
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
