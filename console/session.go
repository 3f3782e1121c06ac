package console

import (
	"net/http"

	"github.com/agentledger/agentledger/account"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/fault"
	"github.com/agentledger/agentledger/internal/web"
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

// write serves a call that changes something.
func (s *Server) write(c call) http.Handler {
	return s.serve(c, func(role account.Role) bool { return role == account.Owner || role == account.Admin })
}

func (s *Server) serve(c call, may func(account.Role) bool) http.Handler {
	return s.Edge.Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.crossOrigin.Check(r); err != nil {
			return fault.Wrap(fault.Forbidden, "Requests from other sites are not accepted", err)
		}
		who, err := s.session(r)
		if err != nil {
			return err
		}
		if who.Tenant == id.Service || !who.Role.Valid() || !may(who.Role) {
			return fault.New(fault.Forbidden, "Your role does not allow this")
		}
		a, err := c(r, who)
		if err != nil {
			return err
		}
		if a.body == nil {
			web.NoContent(w)
			return nil
		}
		return web.WriteJSON(w, a.status, a.body)
	})
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
