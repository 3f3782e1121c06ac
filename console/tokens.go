package console

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/consoletoken"
)

// bearerToken returns the console token of a request, "" when it has none.
func bearerToken(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !strings.HasPrefix(token, consoletoken.Prefix) {
		return ""
	}
	return token
}

// admitToken returns for whom a token acts if its role and its kind have a permission. The request
// that goes on names the token in the events of its changes.
func (s *Server) admitToken(
	r *http.Request, token string, right account.Permission,
) (*account.Session, *http.Request, error) {
	who, name, err := s.Tokens.Authenticate(r.Context(), token)
	if err != nil {
		return nil, nil, err
	}
	if !right.ForTokens() {
		return nil, nil, fault.New(fault.Forbidden, "Tokens can't do this: sign in")
	}
	if !who.Role.May(right) {
		return nil, nil, fault.New(fault.Forbidden, "The token's role does not allow this")
	}
	return who, r.WithContext(sysevent.WithCredential(r.Context(), string(name))), nil
}

type tokenView struct {
	ID        consoletoken.ID `json:"token_id"`
	Name      string          `json:"name"`
	Role      account.Role    `json:"role"`
	CreatedAt id.Instant      `json:"created_at"`
	ExpiresAt id.Instant      `json:"expires_at"`
}

func describeToken(k consoletoken.Token) tokenView { return tokenView(k) }

// listTokens lists the caller's own, oldest first.
func (s *Server) listTokens(r *request) (answer, error) {
	p, err := r.parsePage()
	if err != nil {
		return answer{}, err
	}
	all, err := s.Tokens.List(r.Context(), r.who.Tenant, r.who.Account)
	if err != nil {
		return answer{}, err
	}
	begin := 1 + slices.IndexFunc(all, func(k consoletoken.Token) bool { return string(k.ID) == p.after })
	if begin == 0 && p.after != "" {
		return answer{}, fault.New(fault.Invalid, "after is not a token of yours")
	}
	var body struct {
		Tokens []tokenView `json:"tokens"`
		Next   *string     `json:"next"`
	}
	body.Tokens, body.Next = cutPage(p, all[begin:], func(k consoletoken.Token) string { return string(k.ID) },
		describeToken)
	return answer{http.StatusOK, body}, nil
}

func (s *Server) createToken(r *request) (answer, error) {
	var body struct {
		Name      string       `json:"name"`
		Role      account.Role `json:"role"`
		ExpiresAt time.Time    `json:"expires_at"`
	}
	if err := r.decodeBody(&body); err != nil {
		return answer{}, err
	}
	wanted := consoletoken.Wanted{Name: body.Name, Role: body.Role, ExpiresAt: id.InstantOf(body.ExpiresAt)}
	made, secret, err := s.Tokens.Create(r.Context(), r.who.Tenant, r.who.Account, wanted)
	if err != nil {
		return answer{}, err
	}
	return answer{http.StatusCreated, struct {
		tokenView
		Token string `json:"token"`
	}{describeToken(made), secret}}, nil
}

func (s *Server) deleteToken(r *request) (answer, error) {
	name := consoletoken.ID(r.pathParameter("token"))
	return answer{status: http.StatusNoContent}, s.Tokens.Delete(r.Context(), r.who.Tenant, r.who.Account, name)
}
