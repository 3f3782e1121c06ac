package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// setPassword sets the password of an existing account. The operator uses it for accounts that have no password or
// whose owner lost it.
func (s *Server) setPassword(w http.ResponseWriter, r *request) error {
	var body credentials
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	names, err := s.organizationNames(r.Context(), body.Email)
	if err != nil {
		return err
	}
	if err := s.Accounts.SetPassword(r.Context(), body.Email, body.Password, names...); err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}

// organizationNames returns the names of all organizations of an account, including offered ones, because none of these
// names may be its password.
func (s *Server) organizationNames(ctx context.Context, email string) ([]string, error) {
	who, err := s.Accounts.Find(ctx, email)
	if err != nil {
		return nil, err
	}
	places, err := s.Accounts.Places(ctx, who.ID)
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
