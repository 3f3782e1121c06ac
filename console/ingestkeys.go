package console

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeIngestKey(k org.IngestKey) wire.IngestKey {
	return wire.IngestKey{
		KeyID: k.ID, Name: k.Name, KeyPrefix: k.Prefix, Scopes: k.Scopes.Names(),
		Agents:    slices.Concat([]id.Agent{}, k.Agents),
		CreatedAt: k.CreatedAt, CreatedBy: k.CreatedBy, ExpiresAt: wire.Time(k.ExpiresAt),
		RevokedAt: wire.Time(k.RevokedAt), Asks: k.Asks, LastUsedAt: wire.Time(k.LastUsedAt),
	}
}

func (s *Server) listIngestKeys(r *request) (answer, error) {
	return okAnswer(s.ListIngestKeys(r.Context(), r.Caller, r.URL.Query()))
}

// ListIngestKeys returns a page of the ingest keys, oldest first.
func (s *Server) ListIngestKeys(ctx context.Context, c *Caller, query url.Values) (wire.IngestKeys, error) {
	var body wire.IngestKeys
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	all, err := s.Orgs.ListIngestKeys(ctx, c.Who.Tenant)
	if err != nil {
		return body, err
	}
	begin := 1 + slices.IndexFunc(all, func(k org.IngestKey) bool { return k.ID == p.After })
	if begin == 0 && p.After != "" {
		return body, fault.New(fault.Invalid, "after is not an ingest key of the organization")
	}
	body.Keys, body.Next = edge.CutPage(p, all[begin:], func(k org.IngestKey) string { return k.ID }, describeIngestKey)
	return body, nil
}

func (s *Server) answerIngestKey(r *request) (answer, error) {
	return okAnswer(s.ShowIngestKey(r.Context(), r.Caller, r.PathParameter("key")))
}

// ShowIngestKey returns an ingest key.
func (s *Server) ShowIngestKey(ctx context.Context, c *Caller, name string) (wire.IngestKey, error) {
	if err := s.surface.check(ctx, c, account.Read); err != nil {
		return wire.IngestKey{}, err
	}
	key, err := s.Orgs.ShowIngestKey(ctx, c.Who.Tenant, name)
	return describeIngestKey(key), err
}

func (s *Server) createIngestKey(r *request) (answer, error) {
	var body struct {
		Name      string     `json:"name"`
		Scopes    []string   `json:"scopes"`
		ExpiresAt *time.Time `json:"expires_at"`
		Agents    []id.Agent `json:"agents"`
		Asks      bool       `json:"asks"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	wanted := org.WantedKey{Name: body.Name, Agents: body.Agents, Asks: body.Asks}
	var err error
	if wanted.Scopes, err = org.ParseScopes(body.Scopes); err != nil {
		return answer{}, err
	}
	if body.ExpiresAt != nil {
		wanted.ExpiresAt = max(1, id.InstantOf(*body.ExpiresAt)) // 0 would mean never
	}
	key, token, err := s.Orgs.CreateIngestKey(r.Context(), r.Who.Tenant, string(r.Who.Account), wanted)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated,
		wire.CreatedIngestKey{Key: describeIngestKey(key), Secret: token.Reveal()}), nil
}

func (s *Server) patchIngestKey(r *request) (answer, error) {
	var body struct {
		Name *string `json:"name"`
		Asks *bool   `json:"asks"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	key, err := s.Orgs.ChangeIngestKey(r.Context(), r.Who.Tenant, string(r.Who.Account), r.PathParameter("key"),
		org.KeyPatch{Name: body.Name, Asks: body.Asks})
	return jsonAnswer(http.StatusOK, describeIngestKey(key)), err
}

func (s *Server) revokeIngestKey(r *request) (answer, error) {
	name := r.PathParameter("key")
	return noContent(s.Orgs.RevokeIngestKey(r.Context(), r.Who.Tenant, string(r.Who.Account), name))
}
