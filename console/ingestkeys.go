package console

import (
	"net/http"
	"slices"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
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

// listIngestKeys lists them oldest first.
func (s *Server) listIngestKeys(r *request) (answer, error) {
	p, err := r.ParsePage()
	if err != nil {
		return answer{}, err
	}
	all, err := s.Orgs.ListIngestKeys(r.Context(), r.Who.Tenant)
	if err != nil {
		return answer{}, err
	}
	begin := 1 + slices.IndexFunc(all, func(k org.IngestKey) bool { return k.ID == p.After })
	if begin == 0 && p.After != "" {
		return answer{}, fault.New(fault.Invalid, "after is not an ingest key of the organization")
	}
	var body wire.IngestKeys
	body.Keys, body.Next = edge.CutPage(p, all[begin:], func(k org.IngestKey) string { return k.ID }, describeIngestKey)
	return jsonAnswer(http.StatusOK, body), nil
}

func (s *Server) answerIngestKey(r *request) (answer, error) {
	key, err := s.Orgs.ShowIngestKey(r.Context(), r.Who.Tenant, r.PathParameter("key"))
	return jsonAnswer(http.StatusOK, describeIngestKey(key)), err
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
