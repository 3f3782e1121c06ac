package ingest

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

// caller is the result of authentication: the ingest key, the state of the organization's ledger at that time, and the
// share of the load control to which the request counts. All later steps use these.
type caller struct {
	*org.Caller
	share admission.Tenant
	state *log.State // nil if the request is refused
}

// wantedScope is the scope that the ingest key of a caller must have.
type wantedScope struct {
	scope        org.Scopes
	name         string
	unauthorized string // the message for a caller without a valid key
}

// newWantedScope returns the scope of a route, by its name.
func newWantedScope(name string) wantedScope {
	scope, err := org.ParseScopes([]string{name})
	if err != nil {
		panic("ingest: a route has no known scope: " + name)
	}
	unauthorized := "Invalid API key"
	if name == org.ScopeEvaluate.String() {
		unauthorized = "Invalid ingest API key"
	}
	return wantedScope{scope, name, unauthorized}
}

// authenticate authenticates the caller and checks that its key has the scope and that its
// organization is active. If a known caller is refused, it returns the caller without a state.
func (s *Server) authenticate(r *http.Request, wants wantedScope) (caller, error) {
	ctx := r.Context()
	c, err := s.orgs.Authenticate(ctx, bearerToken(r.Header))
	if fault.Is(err, fault.Unauthorized) {
		return caller{}, fault.Wrap(fault.Unauthorized, wants.unauthorized, err)
	}
	if err != nil {
		return caller{}, err
	}
	known := caller{Caller: c, share: admission.TenantOf(c.Tenant)}
	if c.Scopes&wants.scope == 0 {
		return known, fault.New(fault.Forbidden, "The ingest key does not have the scope "+wants.name)
	}
	if err := s.edge.CheckOwner(ctx, c.Tenant); err != nil {
		return known, err
	}
	state, err := s.ledgers.State(ctx, c.Tenant)
	if err != nil {
		return known, err
	}
	if _, err := s.activeSettings(ctx, state); err != nil {
		return known, err
	}
	known.state = state
	return known, nil
}

// activeSettings returns the settings of an organization that accepts events.
func (s *Server) activeSettings(ctx context.Context, state *log.State) (*org.Settings, error) {
	settings, err := s.orgs.Settings(ctx, state)
	if err != nil {
		return nil, err
	}
	if !settings.Active {
		return nil, fault.New(fault.Forbidden, "The organization is inactive")
	}
	return settings, nil
}

// checkAgent rejects agents that the ingest key is not restricted to.
func (c caller) checkAgent(a id.Agent) error {
	if len(c.Agents) > 0 && !slices.Contains(c.Agents, a) {
		return fault.New(fault.Forbidden, "The ingest key is not for this agent")
	}
	return nil
}

// bearerToken returns the token of the only Authorization header, or "".
func bearerToken(h http.Header) string {
	values := h["Authorization"]
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimLeft(token, " ")
}
