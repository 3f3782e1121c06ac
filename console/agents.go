package console

import (
	"context"
	"net/url"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/internal/wire/issued"
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

// NewAgent is the request for an agent. Without a key of its own, the service generates the agent's first key.
type NewAgent struct {
	AgentID     id.Agent `json:"agent_id"`
	DisplayName string   `json:"display_name"`
	NewAgentKey `json:",inline"`
}

// NewAgentKey is a public key supplied by a client.
type NewAgentKey struct {
	PublicKeyB64 string `json:"public_key_b64"`
	ProofB64     string `json:"proof_b64"`
	KeyID        id.Key `json:"key_id"`
}

func (k NewAgentKey) toRegistration() agent.Registration {
	return agent.Registration{KeyID: k.KeyID, PublicKey: k.PublicKeyB64, Proof: k.ProofB64}
}

func (s *Server) createAgent(r *request) (answer, error) {
	var wanted NewAgent
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	if wanted.NewAgentKey != (NewAgentKey{}) {
		return createdAnswer(s.CreateAgentWithKey(r.Context(), r.Caller, wanted))
	}
	return createdAnswer(s.CreateAgent(r.Context(), r.Caller, wanted))
}

// CreateAgent creates an agent and generates its first key.
func (s *Server) CreateAgent(ctx context.Context, c *Caller, wanted NewAgent) (issued.CreatedAgent, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return issued.CreatedAgent{}, err
	}
	made, credentials, err := s.Agents.CreateAgent(ctx, c.Who.Tenant, string(c.Who.Account),
		agent.Wanted{ID: wanted.AgentID, DisplayName: wanted.DisplayName})
	if err != nil {
		return issued.CreatedAgent{}, err
	}
	return issued.CreatedAgent{Agent: describeAgent(made), Credentials: credentials.Wire()}, nil
}

// CreateAgentWithKey creates an agent whose private key the service never has.
func (s *Server) CreateAgentWithKey(
	ctx context.Context, c *Caller, wanted NewAgent,
) (wire.CreatedAgentWithKey, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.CreatedAgentWithKey{}, err
	}
	made, key, err := s.Agents.CreateAgentWithKey(ctx, c.Who.Tenant, string(c.Who.Account),
		agent.Wanted{ID: wanted.AgentID, DisplayName: wanted.DisplayName}, wanted.toRegistration())
	return wire.CreatedAgentWithKey{Agent: describeAgent(made), Key: describeAgentKey(key)}, err
}

// AgentPatch is a change of an agent. Nil members stay as they are.
type AgentPatch struct {
	DisplayName *string `json:"display_name"`
	Bridge      *bool   `json:"bridge"`
	Active      *bool   `json:"active"`
}

func (s *Server) patchAgent(r *request) (answer, error) {
	var patch AgentPatch
	if err := r.DecodeBody(&patch); err != nil {
		return answer{}, err
	}
	return okAnswer(s.ChangeAgent(r.Context(), r.Caller, r.PathParameter("agent"), patch))
}

// ChangeAgent changes an agent and returns it.
func (s *Server) ChangeAgent(ctx context.Context, c *Caller, name string, patch AgentPatch) (wire.Agent, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.Agent{}, err
	}
	changed, err := s.Agents.Change(ctx, c.Who.Tenant, string(c.Who.Account), id.Agent(name), agent.Patch(patch))
	return describeAgent(changed), err
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
	var key NewAgentKey
	if err := r.DecodeBody(&key); err != nil {
		return answer{}, err
	}
	return createdAnswer(s.RegisterAgentKey(r.Context(), r.Caller, r.PathParameter("agent"), key))
}

// RegisterAgentKey registers a key of an agent.
func (s *Server) RegisterAgentKey(ctx context.Context, c *Caller, name string, key NewAgentKey) (wire.AgentKey, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.AgentKey{}, err
	}
	k, err := s.Agents.RegisterKey(ctx, c.Who.Tenant, string(c.Who.Account), id.Agent(name), key.toRegistration())
	return describeAgentKey(k), err
}

func (s *Server) retireAgentKey(r *request) (answer, error) {
	if err := r.DecodeOptionalBody(&struct{}{}); err != nil {
		return answer{}, err
	}
	return okAnswer(s.RetireAgentKey(r.Context(), r.Caller, r.PathParameter("agent"), r.PathParameter("key")))
}

// RetireAgentKey retires a key of an agent.
func (s *Server) RetireAgentKey(ctx context.Context, c *Caller, name, key string) (wire.AgentKey, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.AgentKey{}, err
	}
	k, err := s.Agents.RetireKey(ctx, c.Who.Tenant, string(c.Who.Account), id.Agent(name), id.Key(key))
	return describeAgentKey(k), err
}

// KeyRevocation explains why a key is revoked. CompromisedFrom is the first event that may be forged; if nil, none is.
type KeyRevocation struct {
	CompromisedFrom *id.Index `json:"compromised_from"`
	Reason          string    `json:"reason"`
}

func (s *Server) revokeAgentKey(r *request) (answer, error) {
	var why KeyRevocation
	if err := r.DecodeOptionalBody(&why); err != nil {
		return answer{}, err
	}
	return okAnswer(s.RevokeAgentKey(r.Context(), r.Caller, r.PathParameter("agent"), r.PathParameter("key"), why))
}

// RevokeAgentKey revokes a key of an agent.
func (s *Server) RevokeAgentKey(
	ctx context.Context, c *Caller, name, key string, why KeyRevocation,
) (wire.AgentKey, error) {
	if err := s.surface.check(ctx, c, account.RevokeKeys); err != nil {
		return wire.AgentKey{}, err
	}
	k, err := s.Agents.RevokeKey(ctx, c.Who.Tenant, string(c.Who.Account), id.Agent(name), id.Key(key),
		agent.Revocation(why))
	return describeAgentKey(k), err
}
