package identity

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/wire"
)

// currentSession returns the session of a request.
func (s *Server) currentSession(r *request) (*account.Session, error) {
	return s.FindSession(r.Request)
}

// stepUp confirms the identity of the session's person again. The session continues under a new token.
func (s *Server) stepUp(w http.ResponseWriter, r *request) error {
	var body struct {
		Password string         `json:"password"`
		Passkey  jsontext.Value `json:"passkey"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	var token string
	var session *account.Session
	var err error
	if body.Passkey != nil {
		token, session, err = s.stepUpByPasskey(r, body.Passkey)
	} else {
		token, session, err = s.Accounts.StepUp(r.Context(), s.sessionToken(r.Request), body.Password,
			s.Address(r.Request), s.describeVisit(r))
	}
	if err != nil {
		return err
	}
	answer, err := s.welcomePerson(w, r, token, session)
	return writeSignedIn(w, answer, err)
}

// changePassword ends all sessions of the account and opens a new one.
func (s *Server) changePassword(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	var body struct {
		Current string `json:"current"`
		New     string `json:"new"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	names, err := s.organizationNames(r.Context(), session.Email)
	if err != nil {
		return err
	}
	who, err := s.Accounts.ChangePassword(r.Context(), session, body.Current, body.New, s.Address(r.Request),
		s.describeVisit(r), names...)
	if err != nil {
		return err
	}
	answer, err := s.openSession(w, r, who, session.Tenant, session.SignIn)
	return writeSignedIn(w, answer, err)
}

// patchAccount changes the person's own settings.
func (s *Server) patchAccount(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	var body struct {
		DisplayName  *string `json:"display_name"`
		ApprovalMail *bool   `json:"approval_mail"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	wishes := account.Wishes{DisplayName: body.DisplayName, ApprovalMail: body.ApprovalMail}
	if wishes != (account.Wishes{}) {
		if err := s.Accounts.SetWishes(r.Context(), session.Account, wishes); err != nil {
			return err
		}
	}
	return s.answerSession(w, r)
}

func (s *Server) listSessions(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	sessions, err := s.ListSessions(r.Context(), session)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, sessions)
}

// ListSessions returns the sessions of an account.
func (s *Server) ListSessions(ctx context.Context, session *account.Session) (wire.Sessions, error) {
	found, err := s.Accounts.Sessions(ctx, session.Account)
	if err != nil {
		return wire.Sessions{}, err
	}
	named, err := s.nameOrganizations(ctx, session.Account)
	if err != nil {
		return wire.Sessions{}, err
	}
	shown := make([]wire.Session, len(found))
	for i, f := range found {
		shown[i] = wire.Session{ID: f.ID, Current: f.ID == session.ID, Organization: named[f.Tenant],
			OpenedAt: f.OpenedAt, SeenAt: f.SeenAt, ExpiresAt: f.ExpiresAt, Address: f.Address, Program: f.Program}
	}
	return wire.Sessions{Sessions: shown}, nil
}

// nameOrganizations returns the organizations of an account, by tenant.
func (s *Server) nameOrganizations(ctx context.Context, who account.ID) (map[id.Tenant]*wire.NamedOrganization, error) {
	places, err := s.Accounts.Places(ctx, who)
	if err != nil {
		return nil, err
	}
	named := make(map[id.Tenant]*wire.NamedOrganization, len(places))
	for _, m := range places {
		summary, err := s.Orgs.Summary(ctx, m.Tenant)
		if err != nil {
			return nil, err
		}
		named[m.Tenant] = &wire.NamedOrganization{ID: summary.ID, Slug: summary.Slug, Name: summary.Name}
	}
	return named, nil
}

func (s *Server) endSession(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	wanted := chi.URLParam(r.Request, "session")
	n, err := s.Accounts.EndSessions(r.Context(), session.Account, s.describeVisit(r),
		func(l account.ListedSession) bool { return l.ID == wanted })
	if err != nil {
		return err
	}
	if n == 0 {
		return fault.New(fault.NotFound, "Not found")
	}
	edge.WriteNoContent(w)
	return nil
}

func (s *Server) endOtherSessions(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	_, err = s.Accounts.EndSessions(r.Context(), session.Account, s.describeVisit(r),
		func(l account.ListedSession) bool { return l.ID != session.ID })
	if err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}

func (s *Server) listLoginEvents(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	events, err := s.ListLoginEvents(r.Context(), session)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, events)
}

// ListLoginEvents returns the login events of an account.
func (s *Server) ListLoginEvents(ctx context.Context, session *account.Session) (wire.LoginEvents, error) {
	found, err := s.Accounts.LoginEvents(ctx, session.Account)
	shown := make([]wire.LoginEvent, len(found))
	for i, f := range found {
		shown[i] = wire.LoginEvent{At: f.At, Kind: string(f.Kind), Address: f.Address, Program: f.Program}
	}
	return wire.LoginEvents{Events: shown}, err
}
