package identity

import (
	"context"
	"net/http"

	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/storage"
)

// Mail sends mail to the people of accounts. It is an interface because its implementation, package notify, depends on
// the expression language of policies, which this package must not link.
type Mail interface {
	Enabled() bool
	ResetMail(ctx context.Context, reset account.Reset) ([]storage.Change, error)
}

func (s *Server) forgotPassword(w http.ResponseWriter, r *request) error {
	var body struct {
		Email string `json:"email"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	return writeNoContent(w, s.ForgotPassword(r.Context(), r.caller, body.Email))
}

// ForgotPassword mails a link to set a new password. The answer and the work are the same for addresses with and
// without an account.
func (s *Server) ForgotPassword(ctx context.Context, c *Caller, email string) error {
	if _, err := account.ParseEmail(email); err != nil {
		return err // no account can have this address
	}
	if !s.Mail.Enabled() {
		return nil
	}
	return s.Accounts.BeginReset(ctx, email, s.Address(c.request), s.Mail.ResetMail)
}

// PasswordReset sets the password of the account that the token of a mailed link names.
type PasswordReset struct {
	Token    string `json:"token"`
	Password string `json:"password"`
}

func (s *Server) resetPassword(w http.ResponseWriter, r *request) error {
	var body PasswordReset
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	return writeNoContent(w, s.ResetPassword(r.Context(), r.caller, body))
}

// ResetPassword sets a password by the token of a mailed link. It opens no session.
func (s *Server) ResetPassword(ctx context.Context, c *Caller, reset PasswordReset) error {
	if reset.Token == "" {
		return errRequired("token")
	}
	from := s.Address(c.request)
	who, err := s.Accounts.FindReset(ctx, reset.Token, from)
	if err != nil {
		return err
	}
	names, err := s.organizationNames(ctx, who)
	if err != nil {
		return err
	}
	return s.Accounts.ResetPassword(ctx, reset.Token, reset.Password, from, s.describeVisit(c), names...)
}
