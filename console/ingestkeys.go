package console

import (
	"context"
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
		RevokedAt: wire.Time(k.RevokedAt), Asks: k.Asks, Subjects: (*wire.SubjectIssuer)(k.Subjects), LastUsedAt: wire.Time(k.LastUsedAt),
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

// NewIngestKey is the request for an ingest key. If ExpiresAt is nil, the key does not expire.
type NewIngestKey struct {
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at"`
	Agents    []id.Agent `json:"agents"`
	Asks      bool       `json:"asks"`
}

func (s *Server) createIngestKey(r *request) (answer, error) {
	var wanted NewIngestKey
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return createdAnswer(s.CreateIngestKey(r.Context(), r.Caller, wanted))
}

// CreateIngestKey creates an ingest key. The answer contains its secret.
func (s *Server) CreateIngestKey(ctx context.Context, c *Caller, wanted NewIngestKey) (wire.CreatedIngestKey, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.CreatedIngestKey{}, err
	}
	scopes, err := org.ParseScopes(wanted.Scopes)
	if err != nil {
		return wire.CreatedIngestKey{}, err
	}
	k := org.WantedKey{Name: wanted.Name, Scopes: scopes, Agents: wanted.Agents, Asks: wanted.Asks}
	if wanted.ExpiresAt != nil {
		k.ExpiresAt = max(1, id.InstantOf(*wanted.ExpiresAt)) // 0 would mean never
	}
	key, token, err := s.Orgs.CreateIngestKey(ctx, c.Who.Tenant, string(c.Who.Account), k)
	if err != nil {
		return wire.CreatedIngestKey{}, err
	}
	return wire.CreatedIngestKey{Key: describeIngestKey(key), Secret: token.Reveal()}, nil
}

// IngestKeyPatch is a change of an ingest key. Nil members stay as they are.
type IngestKeyPatch struct {
	Name     *string             `json:"name"`
	Asks     *bool               `json:"asks"`
	Subjects *wire.SubjectIssuer `json:"subject_issuer"` // the zero value removes it
}

func (s *Server) patchIngestKey(r *request) (answer, error) {
	var patch IngestKeyPatch
	if err := r.DecodeBody(&patch); err != nil {
		return answer{}, err
	}
	return okAnswer(s.ChangeIngestKey(r.Context(), r.Caller, r.PathParameter("key"), patch))
}

// ChangeIngestKey changes an ingest key and returns it.
func (s *Server) ChangeIngestKey(
	ctx context.Context, c *Caller, name string, patch IngestKeyPatch,
) (wire.IngestKey, error) {
	if err := s.surface.check(ctx, c, account.Manage); err != nil {
		return wire.IngestKey{}, err
	}
	key, err := s.Orgs.ChangeIngestKey(ctx, c.Who.Tenant, string(c.Who.Account), name,
		org.KeyPatch{Name: patch.Name, Asks: patch.Asks, Subjects: (*org.SubjectIssuer)(patch.Subjects)})
	return describeIngestKey(key), err
}

func (s *Server) revokeIngestKey(r *request) (answer, error) {
	return noContent(s.RevokeIngestKey(r.Context(), r.Caller, r.PathParameter("key")))
}

// RevokeIngestKey revokes an ingest key.
func (s *Server) RevokeIngestKey(ctx context.Context, c *Caller, name string) error {
	if err := s.surface.check(ctx, c, account.RevokeKeys); err != nil {
		return err
	}
	return s.Orgs.RevokeIngestKey(ctx, c.Who.Tenant, string(c.Who.Account), name)
}
