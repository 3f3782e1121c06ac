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
	"github.com/agentledger/agentledger/internal/tenant/apitoken"
	"github.com/agentledger/agentledger/internal/wire"
)

func describeToken(k apitoken.Token) wire.Token {
	return wire.Token{TokenID: string(k.ID), Name: k.Name, Role: string(k.Role), CreatedAt: k.CreatedAt,
		ExpiresAt: k.ExpiresAt}
}

func (s *Server) listTokens(r *request) (answer, error) {
	return okAnswer(s.ListTokens(r.Context(), r.Caller, r.URL.Query()))
}

// ListTokens returns a page of the caller's tokens, oldest first.
func (s *Server) ListTokens(ctx context.Context, c *Caller, query url.Values) (wire.Tokens, error) {
	var body wire.Tokens
	if err := s.surface.check(ctx, c, account.UseTokens); err != nil {
		return body, err
	}
	p, err := edge.ParsePage(query)
	if err != nil {
		return body, err
	}
	all, err := s.Tokens.List(ctx, c.Who.Tenant, c.Who.Account)
	if err != nil {
		return body, err
	}
	begin := 1 + slices.IndexFunc(all, func(k apitoken.Token) bool { return string(k.ID) == p.After })
	if begin == 0 && p.After != "" {
		return body, fault.New(fault.Invalid, "after is not a token of yours")
	}
	body.Tokens, body.Next = edge.CutPage(p, all[begin:], func(k apitoken.Token) string { return string(k.ID) },
		describeToken)
	return body, nil
}

// NewToken is the request for a console token.
type NewToken struct {
	Name      string       `json:"name"`
	Role      account.Role `json:"role"`
	ExpiresAt time.Time    `json:"expires_at"`
}

func (s *Server) createToken(r *request) (answer, error) {
	var wanted NewToken
	if err := r.DecodeBody(&wanted); err != nil {
		return answer{}, err
	}
	return createdAnswer(s.CreateToken(r.Context(), r.Caller, wanted))
}

// CreateToken creates a token of the caller. The answer contains its secret.
func (s *Server) CreateToken(ctx context.Context, c *Caller, wanted NewToken) (wire.CreatedToken, error) {
	if err := s.surface.check(ctx, c, account.UseTokens); err != nil {
		return wire.CreatedToken{}, err
	}
	if err := s.surface.checkActive(ctx, c.Who.Tenant); err != nil {
		return wire.CreatedToken{}, err
	}
	made, secret, err := s.Tokens.Create(ctx, c.Who.Tenant, c.Who.Account,
		apitoken.Wanted{Name: wanted.Name, Role: wanted.Role, ExpiresAt: id.InstantOf(wanted.ExpiresAt)})
	if err != nil {
		return wire.CreatedToken{}, err
	}
	return wire.CreatedToken{Token: describeToken(made), Secret: secret}, nil
}

func (s *Server) deleteToken(r *request) (answer, error) {
	return noContent(s.DeleteToken(r.Context(), r.Caller, r.PathParameter("token")))
}

// DeleteToken deletes a token of the caller.
func (s *Server) DeleteToken(ctx context.Context, c *Caller, name string) error {
	if err := s.surface.check(ctx, c, account.UseTokens); err != nil {
		return err
	}
	return s.Tokens.Delete(ctx, c.Who.Tenant, c.Who.Account, apitoken.ID(name))
}
