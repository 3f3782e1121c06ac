package console

import (
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// admitCaller returns for whom a request is made, and the request that goes on, if the role has a
// permission. A request with a console token needs no look at the site that it comes from, because
// no browser adds a token by itself.
func (s *Server) admitCaller(
	r *http.Request, right account.Permission,
) (*account.Session, *http.Request, error) {
	if token := bearerToken(r); token != "" {
		return s.admitToken(r, token, right)
	}
	who, err := s.admitPerson(r, right)
	return who, r, err
}

// admitPerson returns the session of a request if its role has a permission.
func (s *Server) admitPerson(r *http.Request, right account.Permission) (*account.Session, error) {
	if err := s.crossOrigin.Check(r); err != nil {
		return nil, fault.Wrap(fault.Forbidden, "Requests from other sites are not accepted", err)
	}
	who, err := s.findSession(r)
	if err != nil {
		return nil, err
	}
	if who.Tenant == id.Service || !who.Role.May(right) {
		return nil, fault.New(fault.Forbidden, "Your role does not allow this")
	}
	if err := s.checkSignedIn(r, who); err != nil {
		return nil, err
	}
	if right.NeedsFactor() {
		return who, who.CheckFactor()
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
	right  account.Permission
	handle call
	w      http.ResponseWriter
	answer answer
}

// Identify implements admission.Call.
func (e *exchange) Identify() (t admission.Tenant, err error) {
	who, r, err := e.server.admitCaller(e.Request, e.right)
	if err != nil {
		return t, err
	}
	e.who, e.byToken, e.Request = who, bearerToken(r) != "", r
	return admission.TenantOf(e.who.Tenant), nil
}

// Handle implements admission.Call.
func (e *exchange) Handle() (err error) {
	e.answer, err = e.handle(&e.request)
	return err
}

// Send implements admission.Sender.
func (e *exchange) Send() error { return e.answer.writeAnswer(e.w) }
