package console

import (
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// admitPerson returns the session of a request if its role has a right.
func (s *Server) admitPerson(r *http.Request, right string) (*account.Session, error) {
	if err := s.crossOrigin.Check(r); err != nil {
		return nil, fault.Wrap(fault.Forbidden, "Requests from other sites are not accepted", err)
	}
	who, err := s.findSession(r)
	if err != nil {
		return nil, err
	}
	if who.Tenant == id.Service || !who.Role.Valid() || !roleHasRight(right, who.Role) {
		return nil, fault.New(fault.Forbidden, "Your role does not allow this")
	}
	return who, nil
}

// classOf returns how the requests of a route are admitted.
func (s *Server) classOf(route *edge.Route[call]) *admission.Class {
	return &admission.Class{Control: s.Control, Limit: s.limit, MaxBody: route.Body.Max,
		Computes: route.Method == http.MethodGet, Yields: true}
}

// exchange is one request of a person and its answer.
type exchange struct {
	request
	server *Server
	right  string
	handle call
	w      http.ResponseWriter
	answer answer
}

// Identify implements admission.Call.
func (e *exchange) Identify() (t admission.Tenant, err error) {
	if e.who, err = e.server.admitPerson(e.Request, e.right); err != nil {
		return t, err
	}
	return admission.TenantOf(e.who.Tenant), nil
}

// Handle implements admission.Call.
func (e *exchange) Handle() (err error) {
	e.answer, err = e.handle(&e.request)
	return err
}

// Send implements admission.Sender.
func (e *exchange) Send() error { return e.answer.writeAnswer(e.w) }
