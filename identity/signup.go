package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire/issued"
)

// maxOwned is the number of organizations that one person may own.
const maxOwned = 10

func (s *Server) foundOrganization(w http.ResponseWriter, r *request) error {
	var body NewOrganization
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	founded, err := s.FoundOrganization(r.Context(), r.caller, body)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, founded)
}

// FoundOrganization creates an organization owned by the signed-in person, if the operator allows it. The session
// continues in the new organization.
func (s *Server) FoundOrganization(ctx context.Context, c *Caller, wanted NewOrganization) (issued.Founded, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return issued.Founded{}, err
	}
	if !s.Signup {
		return issued.Founded{}, fault.New(fault.Forbidden, "Only the operator can create organizations here")
	}
	if err := s.Accounts.CheckProved(ctx, session.Account); err != nil {
		return issued.Founded{}, err
	}
	made, err := s.createOwned(ctx, session.Account, wanted.Name, wanted.Slug)
	if err != nil {
		return issued.Founded{}, err
	}
	answer, err := s.enterOrganization(ctx, c, made.Tenant)
	if err != nil {
		return issued.Founded{}, err
	}
	return describeFounded(answer, made), nil
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
