package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/password"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/internal/wire/issued"
)

// Founder is the request for the first organization of the service and its owner, who has a password or a passkey.
type Founder struct {
	Token        string          `json:"token"`
	Organization NewOrganization `json:"organization"`
	Email        string          `json:"email"`
	Password     string          `json:"password"`
	Passkey      *NewPasskey     `json:"passkey"`
}

// NewOrganization is the request for an organization.
type NewOrganization struct {
	Name string  `json:"name"`
	Slug id.Slug `json:"slug"`
}

func (s *Server) setUp(w http.ResponseWriter, r *request) error {
	var body Founder
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	founded, err := s.SetUp(r.Context(), r.caller, body)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, founded)
}

// SetUp creates the first organization of the service and signs its owner in.
func (s *Server) SetUp(ctx context.Context, c *Caller, by Founder) (issued.Founded, error) {
	created, err := s.checkWayIn(c, by)
	if err != nil {
		return issued.Founded{}, err
	}
	made, err := s.Setup.FoundOrganization(ctx, by.Token, provision.Request{Name: by.Organization.Name,
		Slug: by.Organization.Slug, AdminEmail: by.Email, AdminPassword: by.Password})
	if err != nil {
		return issued.Founded{}, err
	}
	who, err := s.Accounts.Find(ctx, by.Email)
	if err != nil {
		return issued.Founded{}, err
	}
	method := account.ByPassword
	if created != nil {
		method = account.ByPasskey
		who, err = s.Factors.AddFirst(ctx, who, created, s.describeVisit(c))
		s.logRefusal(newPasskeyRefused, c, err)
	}
	if err != nil {
		return issued.Founded{}, err
	}
	answer, err := s.openSession(ctx, c, who, made.Tenant, method)
	if err != nil {
		return issued.Founded{}, err
	}
	return describeFounded(answer, made), nil
}

// checkWayIn returns an error if the owner could never sign in. It returns the owner's passkey, or nil if the owner has
// a password.
func (s *Server) checkWayIn(c *Caller, by Founder) (*factor.Created, error) {
	if by.Passkey == nil {
		return nil, password.Check(by.Password, by.Email, by.Organization.Name)
	}
	if by.Password != "" {
		return nil, errTwoWays()
	}
	return s.checkNewPasskey(c, by.Passkey)
}

func errTwoWays() error {
	return fault.New(fault.Invalid, "Send a password or a passkey, and not both")
}

// describeFounded returns the answer to a person who created an organization.
func describeFounded(answer *wire.SignedIn, made *provision.Result) issued.Founded {
	return issued.Founded{
		SignedIn: *answer, Origin: made.State.Identity().Origin, LogKey: made.State.VerifierKey().String(),
		Agent: made.Agent.Wire(), IngestKey: wire.IngestSecret{KeyID: made.IngestKey.ID, Secret: made.Token.Reveal()},
	}
}
