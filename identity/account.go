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

// Proof proves the presence of a session's person by a password or a passkey.
type Proof struct {
	Password string         `json:"password"`
	Passkey  jsontext.Value `json:"passkey"`
}

func (s *Server) stepUp(w http.ResponseWriter, r *request) error {
	var body Proof
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	answer, err := s.StepUp(r.Context(), r.caller, body)
	return writeSignedIn(w, answer, err)
}

// StepUp confirms the identity of the session's person again. The session continues under a new token.
func (s *Server) StepUp(ctx context.Context, c *Caller, by Proof) (*wire.SignedIn, error) {
	var token string
	var session *account.Session
	var err error
	if by.Passkey != nil {
		token, session, err = s.stepUpByPasskey(ctx, c, by.Passkey)
	} else {
		token, session, err = s.Accounts.StepUp(ctx, c.token, by.Password, s.Address(c.request), s.describeVisit(c))
	}
	if err != nil {
		return nil, err
	}
	return s.welcomePerson(ctx, c, token, session)
}

// PasswordChange replaces the password of an account.
type PasswordChange struct {
	Current string `json:"current"`
	New     string `json:"new"`
}

func (s *Server) changePassword(w http.ResponseWriter, r *request) error {
	var body PasswordChange
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	answer, err := s.ChangePassword(r.Context(), r.caller, body)
	return writeSignedIn(w, answer, err)
}

// ChangePassword ends all sessions of the account and opens a new one.
func (s *Server) ChangePassword(ctx context.Context, c *Caller, change PasswordChange) (*wire.SignedIn, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return nil, err
	}
	names, err := s.organizationNames(ctx, session.Account)
	if err != nil {
		return nil, err
	}
	who, err := s.Accounts.ChangePassword(ctx, session, change.Current, change.New, s.Address(c.request),
		s.describeVisit(c), names...)
	if err != nil {
		return nil, err
	}
	return s.openSession(ctx, c, who, session.Tenant, session.SignIn)
}

// AccountPatch is a change of a person's own settings. Nil members stay as they are.
type AccountPatch struct {
	DisplayName  *string `json:"display_name"`
	ApprovalMail *bool   `json:"approval_mail"`
	WeeklyMail   *bool   `json:"weekly_mail"`
	TimesInUTC   *bool   `json:"times_in_utc"`
}

func (s *Server) patchAccount(w http.ResponseWriter, r *request) error {
	var body AccountPatch
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	answer, err := s.ChangeAccount(r.Context(), r.caller, body)
	return writeSignedIn(w, answer, err)
}

// ChangeAccount changes the person's own settings.
func (s *Server) ChangeAccount(ctx context.Context, c *Caller, patch AccountPatch) (*wire.SignedIn, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return nil, err
	}
	if patch != (AccountPatch{}) {
		wishes := account.Wishes{DisplayName: patch.DisplayName, ApprovalMail: patch.ApprovalMail, WeeklyMail: patch.WeeklyMail, TimesInUTC: patch.TimesInUTC}
		if err := s.Accounts.SetWishes(ctx, session.Account, wishes); err != nil {
			return nil, err
		}
		c.Who = nil // it has the settings of before
	}
	return s.ShowSession(ctx, c)
}

func (s *Server) listSessions(w http.ResponseWriter, r *request) error {
	sessions, err := s.ListSessions(r.Context(), r.caller)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, sessions)
}

// ListSessions returns the sessions of an account.
func (s *Server) ListSessions(ctx context.Context, c *Caller) (wire.Sessions, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return wire.Sessions{}, err
	}
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
	return writeNoContent(w, s.EndSession(r.Context(), r.caller, chi.URLParam(r.Request, "session")))
}

// EndSession ends one session of the account.
func (s *Server) EndSession(ctx context.Context, c *Caller, sessionID string) error {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return err
	}
	n, err := s.Accounts.EndSessions(ctx, session.Account, s.describeVisit(c),
		func(l account.ListedSession) bool { return l.ID == sessionID })
	if err == nil && n == 0 {
		err = fault.New(fault.NotFound, "Not found")
	}
	return err
}

func (s *Server) endOtherSessions(w http.ResponseWriter, r *request) error {
	return writeNoContent(w, s.EndOtherSessions(r.Context(), r.caller))
}

// EndOtherSessions ends all sessions of the account except the caller's.
func (s *Server) EndOtherSessions(ctx context.Context, c *Caller) error {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return err
	}
	_, err = s.Accounts.EndSessions(ctx, session.Account, s.describeVisit(c),
		func(l account.ListedSession) bool { return l.ID != session.ID })
	return err
}

func (s *Server) listLoginEvents(w http.ResponseWriter, r *request) error {
	events, err := s.ListLoginEvents(r.Context(), r.caller)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, events)
}

// ListLoginEvents returns the login events of an account.
func (s *Server) ListLoginEvents(ctx context.Context, c *Caller) (wire.LoginEvents, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return wire.LoginEvents{}, err
	}
	found, err := s.Accounts.LoginEvents(ctx, session.Account)
	shown := make([]wire.LoginEvent, len(found))
	for i, f := range found {
		shown[i] = wire.LoginEvent{At: f.At, Kind: string(f.Kind), Address: f.Address, Program: f.Program}
	}
	return wire.LoginEvents{Events: shown}, err
}
