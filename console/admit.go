package console

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
)

// admitCaller returns the caller of a request if its role has a permission. A request with a token needs no check of
// the requesting site, because browsers never add tokens automatically.
func (s *surface) admitCaller(r *http.Request, right account.Permission) (*Caller, error) {
	if token := bearerToken(r); token != "" {
		return s.admitToken(r, token, right)
	}
	if err := s.checkOrigin(r); err != nil {
		return nil, err
	}
	who, err := s.findSession(r)
	if err != nil {
		return nil, err
	}
	c := NewCaller(who, r.UserAgent())
	if err := s.admit(r.Context(), c, right); err != nil {
		return nil, err
	}
	c.right = right // serveRoute checks that the organization is active
	return c, nil
}

// checkOrigin refuses a request that a browser makes on behalf of another site.
func (s *surface) checkOrigin(r *http.Request) error {
	if err := s.crossOrigin.Check(r); err != nil {
		return fault.Wrap(fault.Forbidden, "Requests from other sites are not accepted", err)
	}
	return nil
}

// findSession returns the session of a request. Every invalid cookie gets the same answer.
func (s *surface) findSession(r *http.Request) (*account.Session, error) {
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return nil, errNoSession(err)
	}
	who, err := s.Sessions.Session(r.Context(), cookie.Value)
	if fault.Is(err, fault.Unauthorized) {
		return nil, errNoSession(err)
	}
	return who, err
}

// checkSignedIn returns fault.Forbidden if the session was not signed in as its organization requires.
func (s *surface) checkSignedIn(ctx context.Context, who *account.Session) error {
	required, err := s.Organizations.SignIn(ctx, who.Tenant)
	if err != nil {
		return err
	}
	return account.Method(required).Allow(who.SignIn)
}

func errNoSession(cause error) error {
	return fault.Wrap(fault.Unauthorized, "Not signed in", cause)
}

// bearerToken returns the console token of a request, or "" if it has none.
func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(token, apitoken.Prefix) {
		return ""
	}
	return token
}

// admitToken returns the caller that a token acts for if the token's role and kind have a permission.
func (s *surface) admitToken(r *http.Request, token string, right account.Permission) (*Caller, error) {
	who, name, err := s.Tokens.Authenticate(r.Context(), token)
	if err != nil {
		return nil, err
	}
	if !right.ForTokens() {
		return nil, fault.New(fault.Forbidden, "Tokens can't do this: sign in")
	}
	if !who.Role.May(right) {
		return nil, fault.New(fault.Forbidden, "The token's role does not allow this")
	}
	return &Caller{Who: who, ByToken: true, Program: r.UserAgent(), token: name, right: right},
		s.Edge.CheckOwner(r.Context(), who.Tenant)
}

// exchange is one request of a caller and its answer.
type exchange struct {
	request
	surface *surface
	right   account.Permission
	handle  handler
	w       http.ResponseWriter
	answer  answer
}

// Identify implements admission.Call.
func (e *exchange) Identify() (t admission.Tenant, err error) {
	if e.Caller, err = e.surface.admitCaller(e.request.Request, e.right); err != nil {
		return t, err
	}
	return admission.TenantOf(e.Who.Tenant), nil
}

// withSource returns the context of a call. Events of its changes name the token, and the source of the call is stored
// with them.
func (s *surface) withSource(r *http.Request, c *Caller) context.Context {
	from := sysevent.Source{Credential: sysevent.BySession, ID: c.Who.ID, Address: s.Address(r)}
	ctx := r.Context()
	if c.ByToken {
		from.Credential, from.ID = sysevent.ByToken, string(c.token)
		ctx = sysevent.WithCredential(ctx, string(c.token))
	}
	return sysevent.WithSource(ctx, from)
}

// Handle implements admission.Call. It copies the request only now, because the admission has replaced its body in the
// meantime.
func (e *exchange) Handle() (err error) {
	ctx, check := sysevent.WithOutcome(e.surface.withSource(e.request.Request, e.Caller))
	e.request.Request = e.WithContext(ctx)
	body := e.surface.Edge.KeepBody(e.request.Request)
	e.answer, err = e.handle(&e.request)
	err = e.surface.Edge.CheckLost(check(err), e.Who.Tenant, nil)
	if lost, ok := errors.AsType[*admission.Elsewhere](err); ok {
		lost.Body, err = e.wholeBody(body(), err)
	}
	return err
}

// wholeBody returns the body of a call that is passed on, with err. A handler has read the whole body or nothing. The
// admission's body cannot be read after the call.
func (e *exchange) wholeBody(body []byte, err error) ([]byte, error) {
	if body != nil || e.body.Max == 0 {
		return body, err
	}
	rest, failed := e.ReadBody()
	return rest, cmp.Or(failed, err)
}

// Send implements admission.Sender.
func (e *exchange) Send() error {
	if e.answer.Stream != nil {
		return e.stream(e.surface.streams, admission.TenantOf(e.Who.Tenant))
	}
	return e.answer.write(e.w)
}
