package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// Mail sends mail to the people of accounts. It is an interface because its implementation, package notify, depends on
// the expression language of policies, which this package must not link.
type Mail interface {
	Enabled() bool
	ResetMail(ctx context.Context, reset account.Reset) ([]storage.Change, error)
}

// forgotPassword mails a link to set a new password. The answer and the work are the same for addresses with and
// without an account.
func (s *Server) forgotPassword(w http.ResponseWriter, r *request) error {
	var body struct {
		Email string `json:"email"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	if _, err := account.ParseEmail(body.Email); err != nil {
		return err // no account can have this address
	}
	if s.Mail.Enabled() {
		if err := s.Accounts.BeginReset(r.Context(), body.Email, s.Address(r.Request), s.Mail.ResetMail); err != nil {
			return err
		}
	}
	edge.WriteNoContent(w)
	return nil
}

// resetPassword sets the password of the account that the token of a mailed link names. It opens no session.
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
