package console

import (
	"cmp"
	"context"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
)

// Caller is the origin of a call: a member with a session, or a program with a console token. Only one goroutine may
// use it at a time.
type Caller struct {
	Who     *account.Session
	ByToken bool
	Program string // of the client (User-Agent), which is stored with votes and voter keys

	token apitoken.ID        // "" for a session
	right account.Permission // the permission that was checked last
}

// NewCaller returns the caller of a session, with its program.
func NewCaller(who *account.Session, program string) *Caller {
	return &Caller{Who: who, Program: program}
}

// permissions returns the permissions of the caller's role, for a token only those that tokens may have.
func (c *Caller) permissions() []string {
	var names []string
	for _, p := range c.Who.Role.Permissions() {
		if !c.ByToken || p.ForTokens() {
			names = append(names, string(p))
		}
	}
	return names
}

// check returns an error unless the caller has a permission. Each exported call begins with it. It is cheap for the
// permission that was checked last, which in calls over HTTP is the route's.
func (s *surface) check(ctx context.Context, c *Caller, right account.Permission) error {
	if c.right == right {
		return nil
	}
	if err := s.admit(ctx, c, right); err != nil {
		return err
	}
	if right.NeedsActive() {
		if err := s.checkActive(ctx, c.Who.Tenant); err != nil {
			return err
		}
	}
	c.right = right
	return nil
}

// admit checks the permission of a session: the role, whether this node owns the organization, the sign-in method, and
// a recently proved factor.
func (s *surface) admit(ctx context.Context, c *Caller, right account.Permission) error {
	who := c.Who
	if who.Tenant == id.Service || !who.Role.May(right) && !right.ForDeputies() {
		return errRole()
	}
	if err := s.Edge.CheckOwner(ctx, who.Tenant); err != nil {
		return err
	}
	if may, err := s.may(ctx, c, right); err != nil || !may {
		return s.Edge.CheckLost(cmp.Or(err, errRole()), who.Tenant, nil)
	}
	if err := s.checkSignedIn(ctx, who); err != nil {
		return s.Edge.CheckLost(err, who.Tenant, nil)
	}
	if right.NeedsFactor() {
		if err := who.CheckFactor(); err != nil {
			return err
		}
	}
	return nil
}

func errRole() error { return fault.New(fault.Forbidden, "Your role does not allow this") }

// may reports whether the role of a caller has a permission, or the caller has it as the deputy of a member.
func (s *surface) may(ctx context.Context, c *Caller, right account.Permission) (bool, error) {
	if c.Who.Role.May(right) || c.ByToken || !right.ForDeputies() {
		return c.Who.Role.May(right), nil
	}
	represents, err := s.Represents(ctx, c.Who.Tenant, c.Who.Account)
	return represents != "", err
}

// CheckOwner returns an error for a page if another node owns the caller's organization, like edge.CheckOwner.
func (s *Server) CheckOwner(ctx context.Context, c *Caller) error {
	return s.surface.Edge.CheckOwner(ctx, c.Who.Tenant)
}

// CheckOrigin returns an error if a browser made the request on behalf of another site.
func (s *Server) CheckOrigin(r *http.Request) error { return s.surface.checkOrigin(r) }

// ServeRead calls read under the load control, as one read of the caller's organization.
func (s *Server) ServeRead(r *http.Request, c *Caller, read func() error) error {
	class := &admission.Class{Control: s.surface.Control, Limit: s.surface.limit, Queue: s.surface.Control.Reads,
		Yields: true}
	return class.Serve(r, pageCall{admission.TenantOf(c.Who.Tenant), read})
}

// ServeChange calls change under the load control, as one change of the caller's organization. The body of r was read;
// maxBody is its maximum size. The context of change names the source of the change, as that of a call over HTTP does.
func (s *Server) ServeChange(r *http.Request, c *Caller, maxBody int64, change func(context.Context) error) error {
	class := &admission.Class{Control: s.surface.Control, Limit: s.surface.limit, MaxBody: maxBody, BodyRead: true,
		Yields: true}
	return class.Serve(r, pageCall{admission.TenantOf(c.Who.Tenant), func() error {
		ctx, check := sysevent.WithOutcome(s.surface.withSource(r, c))
		return check(change(ctx))
	}})
}

// pageCall is the read or the change of a page.
type pageCall struct {
	tenant admission.Tenant
	call   func() error
}

// Identify implements admission.Call.
func (p pageCall) Identify() (admission.Tenant, error) { return p.tenant, nil }

// Handle implements admission.Call.
func (p pageCall) Handle() error { return p.call() }
