package identity

import (
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/password"
	"github.com/agentledger/agentledger/internal/wire"
)

// setupBody describes the first organization and its owner.
type setupBody struct {
	Token        string `json:"token"`
	Organization struct {
		Name string  `json:"name"`
		Slug id.Slug `json:"slug"`
	} `json:"organization"`
	Email    string `json:"email"`
	Password string `json:"password"`

	Passkey *newPasskey `json:"passkey"` // instead of a password
}

// setUp creates the first organization of the service and signs its owner in.
func (s *Server) setUp(w http.ResponseWriter, r *request) error {
	var body setupBody
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	created, err := s.checkWayIn(r, body)
	if err != nil {
		return err
	}
	made, err := s.Setup.FoundOrganization(r.Context(), body.Token, provision.Request{
		Name: body.Organization.Name, Slug: body.Organization.Slug, AdminEmail: body.Email,
		AdminPassword: body.Password,
	})
	if err != nil {
		return err
	}
	who, err := s.Accounts.Find(r.Context(), body.Email)
	if err != nil {
		return err
	}
	by := account.ByPassword
	if created != nil {
		by = account.ByPasskey
		who, err = s.Factors.AddFirst(r.Context(), who, created, s.describeVisit(r))
		s.logRefusal(newPasskeyRefused, r, err)
	}
	if err != nil {
		return err
	}
	answer, err := s.openSession(w, r, who, made.Tenant, by)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, describeFounded(answer, made))
}

// checkWayIn returns an error if the owner could never sign in. It returns the owner's passkey, or nil if the owner has
// a password.
func (s *Server) checkWayIn(r *request, body setupBody) (*factor.Created, error) {
	if body.Passkey == nil {
		return nil, password.Check(body.Password, body.Email, body.Organization.Name)
	}
	if body.Password != "" {
		return nil, errTwoWays()
	}
	return s.checkNewPasskey(r, body.Passkey)
}

func errTwoWays() error {
	return fault.New(fault.Invalid, "Send a password or a passkey, and not both")
}

// describeFounded returns the answer to a person who created an organization.
func describeFounded(answer *wire.SignedIn, made *provision.Result) wire.Founded {
	return wire.Founded{
		SignedIn: *answer, Origin: made.State.Identity().Origin, LogKey: made.State.VerifierKey().String(),
		Agent: made.Agent.Wire(), IngestKey: wire.IngestSecret{KeyID: made.IngestKey.ID, Secret: made.Token.Reveal()},
	}
}
