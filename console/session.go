package console

import (
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// answer is the result of a call: a value for JSON, or nil for no content.
type answer struct {
	status int
	body   any
}

// call answers the request of a person with the permission for it.
type call func(r *request) (answer, error)

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
	right, handle, usual := account.Permission(route.Permission.Right), route.Handler, s.classOf(route)
	polls := &admission.Class{Control: s.Control, Limit: s.polls, Waits: true}
	if right.NeedsActive() {
		handle = s.whileActive(handle)
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		class := usual
		if wait := edge.LongestWait(r); wait > 0 && route.Mode == edge.LongPoll {
			class = polls
			edge.ExtendDeadlines(w, wait)
		}
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

// checkSignedIn returns fault.Forbidden for a session that was not signed in as its organization
// requires.
func (s *Server) checkSignedIn(r *http.Request, who *account.Session) error {
	required, err := s.Orgs.SignIn(r.Context(), who.Tenant)
	if err != nil {
		return err
	}
	return account.Method(required).Allow(who.SignIn)
}

func errNoSession(cause error) error {
	return fault.Wrap(fault.Unauthorized, "Not signed in", cause)
}
