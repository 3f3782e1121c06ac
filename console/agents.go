package console

import (
	"context"
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeAgent(a agent.Agent) wire.Agent {
	return wire.Agent{AgentID: a.ID, DisplayName: a.DisplayName, CreatedAt: a.CreatedAt, CreatedBy: a.CreatedBy,
		Bridge: a.Bridge, Active: !a.Inactive}
}

func describeAgentKey(k agent.Key) wire.AgentKey {
	return wire.AgentKey{
		AgentID: k.Agent, KeyID: k.ID, PublicKeyB64: k.Public.String(), DID: did.KeyDID(k.Public.Bytes()),
		Custody: string(k.Custody), Status: string(k.Status), RegisteredAt: k.RegisteredAt, EndedAt: wire.Time(k.EndedAt),
		CompromisedFrom: k.CompromisedFrom, Reason: k.Reason,
	}
}

func (s *Server) listAgents(r *request) (answer, error) {
	return okAnswer(s.ListAgents(r.Context(), r.Caller, r.URL.Query()))
}

// ListAgents returns a page of the agents.
func (s *Server) ListAgents(ctx context.Context, c *Caller, query url.Values) (wire.Agents, error) {
	var body wire.Agents
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	found, err := s.Agents.ListAgents(ctx, c.Who.Tenant, id.Agent(p.After), p.Limit+1)
	if err != nil {
		return body, err
	}
	body.Agents, body.Next = edge.CutPage(p, found, func(a agent.Agent) string { return string(a.ID) }, describeAgent)
	return body, nil
}

func (s *Server) answerAgent(r *request) (answer, error) {
	return okAnswer(s.ShowAgent(r.Context(), r.Caller, r.PathParameter("agent")))
}

// ShowAgent returns an agent.
func (s *Server) ShowAgent(ctx context.Context, c *Caller, name string) (wire.Agent, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.Agent{}, err
	}
	found, err := s.Agents.Agent(ctx, c.Who.Tenant, id.Agent(name))
	return describeAgent(found), err
}

func (s *Server) createAgent(r *request) (answer, error) {
	var wanted struct {
		AgentID     id.Agent `json:"agent_id"`
		DisplayName string   `json:"display_name"`
		keyBody     `json:",inline"`
	}
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	if wanted.keyBody != (keyBody{}) {
		return s.createAgentWithKey(r, agent.Wanted{ID: wanted.AgentID, DisplayName: wanted.DisplayName},
			wanted.keyBody)
	}
	made, credentials, err := s.Agents.CreateAgent(r.Context(), r.Who.Tenant, string(r.Who.Account),
		agent.Wanted{ID: wanted.AgentID, DisplayName: wanted.DisplayName})
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated,
		wire.CreatedAgent{Agent: describeAgent(made), Credentials: credentials.Wire()}), nil
}

// keyBody is a public key supplied by a client.
type keyBody struct {
	PublicKeyB64 string `json:"public_key_b64"`
	ProofB64     string `json:"proof_b64"`
	KeyID        id.Key `json:"key_id"`
}

func (b keyBody) toRegistration() agent.Registration {
	return agent.Registration{KeyID: b.KeyID, PublicKey: b.PublicKeyB64, Proof: b.ProofB64}
}

// createAgentWithKey creates an agent whose private key the service never has.
func (s *Server) createAgentWithKey(r *request, wanted agent.Wanted, body keyBody) (answer, error) {
	made, key, err := s.Agents.CreateAgentWithKey(r.Context(), r.Who.Tenant, string(r.Who.Account), wanted,
		body.toRegistration())
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated,
		wire.CreatedAgentWithKey{Agent: describeAgent(made), Key: describeAgentKey(key)}), nil
}

func (s *Server) patchAgent(r *request) (answer, error) {
	var patch struct {
		DisplayName *string `json:"display_name"`
		Bridge      *bool   `json:"bridge"`
		Active      *bool   `json:"active"`
	}
	if err := r.DecodeBody(&patch); err != nil {
		return answer{}, err
	}
	changed, err := s.Agents.Change(r.Context(), r.Who.Tenant, string(r.Who.Account), agentOfPath(r),
		agent.Patch{DisplayName: patch.DisplayName, Bridge: patch.Bridge, Active: patch.Active})
	return jsonAnswer(http.StatusOK, describeAgent(changed)), err
}

func (s *Server) listAgentKeys(r *request) (answer, error) {
	return okAnswer(s.ListAgentKeys(r.Context(), r.Caller, r.PathParameter("agent"), r.URL.Query()))
}

// ListAgentKeys returns a page of the keys of an agent.
func (s *Server) ListAgentKeys(ctx context.Context, c *Caller, name string, query url.Values) (wire.AgentKeys, error) {
	var body wire.AgentKeys
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	found, err := s.Agents.ListKeys(ctx, c.Who.Tenant, id.Agent(name), id.Key(p.After), p.Limit+1)
	if err != nil {
		return body, err
	}
	body.Keys, body.Next = edge.CutPage(p, found, func(k agent.Key) string { return string(k.ID) }, describeAgentKey)
	return body, nil
}

func (s *Server) registerKey(r *request) (answer, error) {
	var body keyBody
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	k, err := s.Agents.RegisterKey(r.Context(), r.Who.Tenant, string(r.Who.Account), agentOfPath(r),
		body.toRegistration())
	return jsonAnswer(http.StatusCreated, describeAgentKey(k)), err
}

func (s *Server) retireAgentKey(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	k, err := s.Agents.RetireKey(r.Context(), r.Who.Tenant, string(r.Who.Account), agentOfPath(r),
		id.Key(r.PathParameter("key")))
	return jsonAnswer(http.StatusOK, describeAgentKey(k)), err
}

func (s *Server) revokeAgentKey(r *request) (answer, error) {
	var body struct {
		CompromisedFrom *id.Index `json:"compromised_from"`
		Reason          string    `json:"reason"`
	}
	if err := r.DecodeOptionalBody(&body); err != nil {
		return answer{}, err
	}
	revocation := agent.Revocation{CompromisedFrom: body.CompromisedFrom, Reason: body.Reason}
	k, err := s.Agents.RevokeKey(r.Context(), r.Who.Tenant, string(r.Who.Account), agentOfPath(r),
		id.Key(r.PathParameter("key")), revocation)
	return jsonAnswer(http.StatusOK, describeAgentKey(k)), err
}

func agentOfPath(r *request) id.Agent { return id.Agent(r.PathParameter("agent")) }
