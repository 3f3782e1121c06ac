package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/internal/wire"
)

func (s *Server) beginEmailChange(w http.ResponseWriter, r *request) error {
	var body struct {
		Email string `json:"email"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	return writeNoContent(w, s.BeginEmailChange(r.Context(), r.caller, body.Email))
}

// BeginEmailChange mails a link to a new address for the account. The answer does not reveal whether another account
// has the address.
func (s *Server) BeginEmailChange(ctx context.Context, c *Caller, email string) error {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return err
	}
	return s.Accounts.BeginEmailChange(ctx, session, email, s.Address(c.request))
}

// EmailConfirmation contains the token that was mailed to a new address, and a new password if the account was
// unproved.
type EmailConfirmation struct {
	Token    string `json:"token"`
	Password string `json:"password"`
}

func (s *Server) confirmEmail(w http.ResponseWriter, r *request) error {
	var body EmailConfirmation
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	answer, err := s.ConfirmEmail(r.Context(), r.caller, body)
	return writeSignedIn(w, answer, err)
}

// ConfirmEmail gives the account the address that the token was mailed to. It ends all sessions of the account and
// opens a new one, whose proof of a factor keeps its age. A previously unproved account is taken over and gets a new
// password.
func (s *Server) ConfirmEmail(ctx context.Context, c *Caller, by EmailConfirmation) (*wire.SignedIn, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return nil, err
	}
	if by.Token == "" {
		return nil, errRequired("token")
	}
	names, err := s.organizationNames(ctx, session.Account)
	if err != nil {
		return nil, err
	}
	who, err := s.Accounts.FinishEmailChange(ctx, session, by.Token, by.Password, s.Address(c.request),
		s.describeVisit(c), names...)
	if err != nil {
		return nil, err
	}
	return s.replaceSession(ctx, c, who, session)
}
