package console

import (
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// answer is what a call says: a value for JSON, or nil for no content.
type answer struct {
	status int
	body   any
}

// call answers a request of a person who may make it.
type call func(r *http.Request, who *account.Session) (answer, error)

// read serves a call that every role may make.
func (s *Server) read(c call) http.Handler {
	return s.serve(c, func(account.Role) bool { return true })
}

// write serves a call that changes something of an active organization.
func (s *Server) write(c call) http.Handler { return s.serve(s.whileActive(c), mayWrite) }

// revoke serves a call that takes a key away, of an inactive organization too: a key
// that leaked has to be ended whatever else stands still.
func (s *Server) revoke(c call) http.Handler { return s.serve(c, mayWrite) }

// maySeeURLs tells who sees where the organization's receivers and witnesses are: who
// may name them, because an address may hold a secret.
func maySeeURLs(role account.Role) bool { return mayWrite(role) }

func mayWrite(role account.Role) bool { return role == account.Owner || role == account.Admin }

// whileActive refuses a call, before its body is looked at, in an organization that
// the operator has made inactive.
func (s *Server) whileActive(c call) call {
	return func(r *http.Request, who *account.Session) (answer, error) {
		active, err := s.Orgs.Active(r.Context(), who.Tenant)
		if err != nil {
			return answer{}, err
		}
		if !active {
			return answer{}, fault.New(fault.Forbidden, "The organization is inactive: its console is read-only, but for revoking keys")
		}
		return c(r, who)
	}
}

// serve lets in who may make a call while there is room, and to work on the floor
// when there is a place for the organization.
func (s *Server) serve(c call, may func(account.Role) bool) http.Handler {
	return s.Edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		who, err := s.admit(r, may)
		if err != nil {
			return err
		}
		if err := s.gate.Enter(who.Tenant, 1); err != nil {
			return err
		}
		defer s.gate.Leave(who.Tenant, 1)
		at, err := s.enter(r, who.Tenant)
		if err != nil {
			return err
		}
		defer at.leave()
		r.Body = &patientBody{ReadCloser: r.Body, ctx: r.Context(), place: at}
		a, err := c(r, who)
		if err != nil {
			return err
		}
		at.lend()
		return a.write(w)
	})
}

func (a answer) write(w http.ResponseWriter) error {
	if a.body == nil {
		edge.NoContent(w)
		return nil
	}
	return edge.WriteJSON(w, a.status, a.body)
}

// session returns who asks. Whatever is wrong with the cookie, the answer is the same.
func (s *Server) session(r *http.Request) (*account.Session, error) {
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
