package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// Caller is the origin of a call: a browser or a program, with its address, its cookies and the session that they name.
// Only one goroutine may use it at a time.
type Caller struct {
	Who *account.Session // nil until FindSession has found it

	request   *http.Request      // its address, its cookies and its program
	setCookie func(*http.Cookie) // in the answer
	token     string             // of the session; "" if there is none
	right     account.Permission // the permission that was checked last

	moves id.Tenant // organization whose move to another node makes the call pass on to that node; id.Service: none
}

// NewCaller returns the caller that made a request. setCookie sets a cookie in the answer.
func (s *Server) NewCaller(r *http.Request, setCookie func(*http.Cookie)) *Caller {
	c := &Caller{request: r, setCookie: setCookie}
	if k, err := r.Cookie(s.cookie); err == nil {
		c.token = k.Value
	}
	return c
}

// FindSession returns the session of a caller; fault.Unauthorized if there is none. It looks the session up once. Each
// function that needs a session calls it.
func (s *Server) FindSession(ctx context.Context, c *Caller) (*account.Session, error) {
	if c.Who != nil {
		return c.Who, nil
	}
	who, err := s.Accounts.Session(ctx, c.token)
	if err != nil {
		return nil, err
	}
	c.Who = who
	return who, nil
}

// CheckOrigin returns an error if a browser made the request for a page of another origin.
func (s *Server) CheckOrigin(r *http.Request) error {
	if err := s.origin.Check(r); err != nil {
		return fault.Wrap(fault.Forbidden, "Request of another origin", err)
	}
	return nil
}

// ServeChange calls change, whose events name the address of the caller. If the organization that the call is about has
// moved to another node, it returns the error by which the edge passes the request on, because nothing was changed here.
func (s *Server) ServeChange(ctx context.Context, c *Caller, change func(context.Context) error) error {
	return s.serveChange(ctx, c, sysevent.Source{Address: s.Address(c.request)}, change)
}

// ServeOperator is ServeChange for a caller with the platform secret.
func (s *Server) ServeOperator(ctx context.Context, c *Caller, change func(context.Context) error) error {
	from := sysevent.Source{Credential: sysevent.ByPlatformSecret, Address: s.Address(c.request)}
	return s.serveChange(ctx, c, from, change)
}

// CheckOperated returns an error for a call of the operator about an organization if another node owns it, like
// edge.CheckOwner.
func (s *Server) CheckOperated(ctx context.Context, c *Caller, organization string) error {
	if s.Edge.Passer == nil {
		return nil
	}
	t, err := s.Operator.FindOrganization(ctx, organization)
	if err != nil {
		return err
	}
	c.moves = t
	return s.Edge.CheckOwner(ctx, t)
}

func (s *Server) serveChange(
	ctx context.Context, c *Caller, from sysevent.Source, change func(context.Context) error,
) error {
	ctx, check := sysevent.WithOutcome(sysevent.WithSource(ctx, from))
	err := check(change(ctx))
	return s.Edge.CheckLost(err, c.moves, nil)
}
