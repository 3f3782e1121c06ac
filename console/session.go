package console

import (
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// answer is the result of a call: a value for JSON, or nil for no content.
type answer struct {
	status int
	body   any
}

// call answers the request of a person with the right to it.
type call func(r *request) (answer, error)

// The rights that calls need. mayUse says which roles have them.
const (
	rightRead   = "read"
	rightWrite  = "write"  // change something of an active organization
	rightRevoke = "revoke" // take a key away, also in an inactive organization, because a leaked key has to end
	rightVote   = "vote"   // decide on approvals of an active organization
)

func roleHasRight(right string, role account.Role) bool {
	switch right {
	case rightRead:
		return true
	case rightVote:
		return approval.MayVote(role)
	}
	return roleMayWrite(role)
}

// roleMaySeeURLs reports whether a role sees the addresses of the organization's receivers
// and witnesses. It must have the right to change them, because an address may hold a secret.
func roleMaySeeURLs(role account.Role) bool { return roleMayWrite(role) }

func roleMayWrite(role account.Role) bool { return role == account.Owner || role == account.Admin }

// whileActive refuses a call, before its body is looked at, in an organization that
// the operator has made inactive.
func (s *Server) whileActive(c call) call {
	return func(r *request) (answer, error) {
		active, err := s.Orgs.Active(r.Context(), r.who.Tenant)
		if err != nil {
			return answer{}, err
		}
		if !active {
			return answer{}, fault.New(fault.Forbidden,
				"The organization is inactive: its console is read-only, but for revoking keys")
		}
		return c(r)
	}
}

// serveRoute takes the requests of a route through the load control.
func (s *Server) serveRoute(route *edge.Route[call]) edge.Handler {
	right, handle, class := route.Permission.Right, route.Handler, s.classOf(route)
	if right == rightWrite || right == rightVote {
		handle = s.whileActive(handle)
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		return class.Serve(r, &exchange{request: request{Request: r, body: route.Body}, server: s, right: right,
			handle: handle, w: w})
	}
}

func (a answer) writeAnswer(w http.ResponseWriter) error {
	if a.body == nil {
		edge.WriteNoContent(w)
		return nil
	}
	return edge.WriteJSON(w, a.status, a.body)
}

// findSession returns the session of a request. Every wrong cookie has the same answer.
func (s *Server) findSession(r *http.Request) (*account.Session, error) {
	cookie, err := r.Cookie(CookieName)
	if err != nil {
		return nil, errNoSession(err)
	}
	who, err := s.Sessions.Session(r.Context(), cookie.Value)
	if fault.Is(err, fault.Unauthorized) {
		return nil, errNoSession(err)
	}
	return who, err
}

func errNoSession(cause error) error {
	return fault.Wrap(fault.Unauthorized, "Not signed in", cause)
}
