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

func (s *Server) createToken(r *request) (answer, error) {
	var body struct {
		Name      string       `json:"name"`
		Role      account.Role `json:"role"`
		ExpiresAt time.Time    `json:"expires_at"`
	}
	if err := r.DecodeBody(&body); err != nil {
		return answer{}, err
	}
	wanted := apitoken.Wanted{Name: body.Name, Role: body.Role, ExpiresAt: id.InstantOf(body.ExpiresAt)}
	made, secret, err := s.Tokens.Create(r.Context(), r.Who.Tenant, r.Who.Account, wanted)
	if err != nil {
		return answer{}, err
	}
	return jsonAnswer(http.StatusCreated, wire.CreatedToken{Token: describeToken(made), Secret: secret}), nil
}

func (s *Server) deleteToken(r *request) (answer, error) {
	name := apitoken.ID(r.PathParameter("token"))
	return noContent(s.Tokens.Delete(r.Context(), r.Who.Tenant, r.Who.Account, name))
}
