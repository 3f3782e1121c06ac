package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/internal/tenant/account"
)

func (s *Server) setPassword(w http.ResponseWriter, r *request) error {
	var body struct {
		Email    string `json:"email"`
		Password string `json:"password"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	return writeNoContent(w, s.SetPassword(r.Context(), body.Email, body.Password))
}

// SetPassword sets the password of an existing account. The operator uses it for accounts that have no password or
// whose owner lost it.
func (s *Server) SetPassword(ctx context.Context, email, password string) error {
	who, err := s.Accounts.Find(ctx, email)
	if err != nil {
		return err
	}
	names, err := s.organizationNames(ctx, who.ID)
	if err != nil {
		return err
	}
	return s.Accounts.SetPassword(ctx, email, password, names...)
}

// organizationNames returns the names of all organizations of an account, including offered ones, because none of these
// names may be its password. It does not look the account up by its address, which may change in the meantime.
func (s *Server) organizationNames(ctx context.Context, who account.ID) ([]string, error) {
	places, err := s.Accounts.Places(ctx, who)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(places))
	for i, m := range places {
		summary, err := s.Orgs.Summary(ctx, m.Tenant)
		if err != nil {
			return nil, err
		}
		names[i] = summary.Name
	}
	return names, nil
}
