package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// Mail writes to the people of accounts. It is an interface because package notify, which
// implements it, reaches the expression language of policies, which this surface must not link.
type Mail interface {
	Enabled() bool
	ResetMail(ctx context.Context, reset account.Reset) ([]storage.Change, error)
}

// forgotPassword sends a link to set a new password. The answer and the work are the same for
// addresses with and without an account.
func (s *Server) forgotPassword(w http.ResponseWriter, r *request) error {
	var body struct {
		Email string `json:"email"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	if _, err := account.ParseEmail(body.Email); err != nil {
		return err // it is no address of any account
	}
	if s.Mail.Enabled() {
		if err := s.Accounts.BeginReset(r.Context(), body.Email, s.Address(r.Request), s.Mail.ResetMail); err != nil {
			return err
		}
	}
	edge.WriteNoContent(w)
	return nil
}

// resetPassword sets the password by the token of a link. The person signs in after that.
func (s *Server) resetPassword(w http.ResponseWriter, r *request) error {
	var body struct {
		Token    string `json:"token"`
		Password string `json:"password"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	if body.Token == "" {
		return errRequired("token")
	}
	from := s.Address(r.Request)
	email, err := s.Accounts.FindReset(r.Context(), body.Token, from)
	if err != nil {
		return err
	}
	names, err := s.organizationNames(r.Context(), email)
	if err != nil {
		return err
	}
	err = s.Accounts.ResetPassword(r.Context(), body.Token, body.Password, from, s.describeVisit(r), names...)
	if err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}
