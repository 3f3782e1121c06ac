package console

import (
	"context"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

func (s *Server) answerToolKeys(r *request) (answer, error) {
	return okAnswer(s.ListToolKeys(r.Context(), r.Caller))
}

// ListToolKeys returns the public keys of the organization's tools, at most org.MaxToolKeys.
func (s *Server) ListToolKeys(ctx context.Context, c *Caller) (wire.ToolKeys, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.ToolKeys{}, err
	}
	return s.describeToolKeys(ctx, c)
}

func (s *Server) describeToolKeys(ctx context.Context, c *Caller) (wire.ToolKeys, error) {
	found, err := s.Orgs.ToolKeys(ctx, c.Who.Tenant)
	shown := wire.ToolKeys{Keys: make([]wire.ToolKey, len(found))}
	for i, k := range found {
		shown.Keys[i] = wire.ToolKey{Name: k.Name(), Key: k.Key, RegisteredBy: k.RegisteredBy, RegisteredAt: k.RegisteredAt}
	}
	return shown, err
}

// NewToolKeys are the verifier keys of all tools.
type NewToolKeys struct {
	Keys []string `json:"keys"`
}

func (s *Server) putToolKeys(r *request) (answer, error) {
	var wanted NewToolKeys
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return okAnswer(s.PutToolKeys(r.Context(), r.Caller, wanted))
}

// PutToolKeys replaces the public keys of the organization's tools and returns them. Receipts in results that are recorded later are checked
// under them.
func (s *Server) PutToolKeys(ctx context.Context, c *Caller, wanted NewToolKeys) (wire.ToolKeys, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.ToolKeys{}, err
	}
	if wanted.Keys == nil {
		return wire.ToolKeys{}, fault.New(fault.Invalid, "keys is required")
	}
	if err := s.Orgs.SetToolKeys(ctx, c.Who.Tenant, string(c.Who.Account), wanted.Keys); err != nil {
		return wire.ToolKeys{}, err
	}
	return s.describeToolKeys(ctx, c)
}
