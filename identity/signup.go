package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// maxOwned is the number of organizations that one person may own.
const maxOwned = 10

// foundOwn creates an organization owned by the signed-in person, if the operator allows it. The session continues in
// the new organization.
func (s *Server) foundOwn(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	if !s.Signup {
		return fault.New(fault.Forbidden, "Only the operator can create organizations here")
	}
	var body struct {
		Name string  `json:"name"`
		Slug id.Slug `json:"slug"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	if err := s.Accounts.CheckProved(r.Context(), session.Account); err != nil {
		return err
	}
	made, err := s.createOwned(r.Context(), session.Account, body.Name, body.Slug)
	if err != nil {
		return err
	}
	token, moved, err := s.Accounts.SwitchSession(r.Context(), s.sessionToken(r.Request), made.Tenant)
	if err != nil {
		return err
	}
	answer, err := s.welcomePerson(w, r, token, moved)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, describeFounded(answer, made))
}

// createOwned creates organizations of one person one at a time, so that concurrent calls cannot exceed maxOwned.
func (s *Server) createOwned(
	ctx context.Context, who account.ID, name string, slug id.Slug,
) (*provision.Result, error) {
	leave, err := s.founding.Lock(ctx, who)
	if err != nil {
		return nil, err
	}
	defer leave()
	places, err := s.Accounts.Places(ctx, who)
	if err != nil {
		return nil, err
	}
	owned := 0
	for _, m := range places {
		if m.Role == account.Owner && !m.Offered {
			owned++
		}
	}
	if owned >= maxOwned {
		return nil, &fault.Error{Kind: fault.Conflict, Code: "organization_limit",
			Message: "You own 10 organizations, the most that a person can create"}
	}
	return s.Provisioner.CreateOrganization(ctx, provision.Request{Name: name, Slug: slug, Owner: who})
}
