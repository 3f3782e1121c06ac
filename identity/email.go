package identity

import (
	"net/http"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// beginEmailChange mails a link to a new address for the account. The answer does not reveal whether another account
// has the address.
func (s *Server) beginEmailChange(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	var body struct {
		Email string `json:"email"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	err = s.Accounts.BeginEmailChange(r.Context(), session, body.Email, s.Address(r.Request))
	if err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}

// confirmEmail gives the account the address that the token was mailed to. It ends all sessions of the account and
// opens a new one, whose proof of a factor keeps its age. A previously unproved account is taken over and gets a new
// password.
func (s *Server) confirmEmail(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
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
	names, err := s.organizationNames(r.Context(), session.Email)
	if err != nil {
		return err
	}
	who, err := s.Accounts.FinishEmailChange(r.Context(), session, body.Token, body.Password, s.Address(r.Request),
		s.describeVisit(r), names...)
	if err != nil {
		return err
	}
	answer, err := s.replaceSession(w, r, who, session)
	return writeSignedIn(w, answer, err)
}
