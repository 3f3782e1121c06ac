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

// setupWish is the first organization and its owner.
type setupWish struct {
	Token        string `json:"token"`
	Organization struct {
		Name string  `json:"name"`
		Slug id.Slug `json:"slug"`
	} `json:"organization"`
	Email    string `json:"email"`
	Password string `json:"password"`

	Passkey *newPasskey `json:"passkey"` // in place of a password
}

// setUp makes the first organization of the service and signs its owner in.
func (s *Server) setUp(w http.ResponseWriter, r *request) error {
	var wish setupWish
	if err := r.decodeBody(&wish); err != nil {
		return err
	}
	created, err := s.checkWayIn(r, wish)
	if err != nil {
		return err
	}
	made, err := s.Setup.FoundOrganization(r.Context(), wish.Token, provision.Request{
		Name: wish.Organization.Name, Slug: wish.Organization.Slug, AdminEmail: wish.Email,
		AdminPassword: wish.Password,
	})
	if err != nil {
		return err
	}
	who, err := s.Accounts.Find(r.Context(), wish.Email)
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

// checkWayIn refuses a setup whose owner could never sign in. It returns the owner's passkey, nil
// for one with a password.
func (s *Server) checkWayIn(r *request, wish setupWish) (*factor.Created, error) {
	if wish.Passkey == nil {
		return nil, password.Check(wish.Password, wish.Email, wish.Organization.Name)
	}
	if wish.Password != "" {
		return nil, errTwoWays()
	}
	return s.checkNewPasskey(r, wish.Passkey)
}

func errTwoWays() error {
	return fault.New(fault.Invalid, "Send a password or a passkey, and not both")
}

// describeFounded is the answer to a person who made an organization.
func describeFounded(answer *wire.SignedIn, made *provision.Result) wire.Founded {
	return wire.Founded{
		SignedIn: *answer, Origin: made.State.Identity().Origin, LogKey: made.State.VerifierKey().String(),
		Agent: made.Agent.Wire(), IngestKey: wire.IngestSecret{KeyID: made.IngestKey.ID, Secret: made.Token.Reveal()},
	}
}
