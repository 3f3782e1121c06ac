package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/ratelimit"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/wire"
)

// Names of the cookies of a challenge and of a sign-in that still needs its second factor.
const (
	challengeCookie = "passkey"
	secondCookie    = "factor"
)

// addPasskeyRoutes adds the routes for passkeys and recovery codes.
func (s *Server) addPasskeyRoutes(table *edge.Table[handler]) {
	page, session := edge.Permission{Right: sameOrigin}, edge.Permission{Credential: edge.Session}
	person := edge.Permission{Credential: edge.Session, Right: sameOrigin}
	none, some := edge.Body{}, edge.JSONBody(maxBody)
	table.Add("POST", "/v1/id/auth/passkey/begin", page, none, s.beginPasskey)
	table.Add("POST", "/v1/id/auth/passkey/finish", page, some, s.finishPasskey)
	table.Add("POST", "/v1/id/auth/passkey/create", page, some, s.beginFirstPasskey)
	table.Add("POST", "/v1/id/auth/recovery-code", page, some, s.useRecoveryCode)

	table.Add("GET", "/v1/id/account/passkeys", session, none, s.listPasskeys)
	table.Add("POST", "/v1/id/account/passkeys/begin", person, none, s.beginOwnPasskey)
	table.Add("POST", "/v1/id/account/passkeys/finish", person, some, s.addPasskey)
	table.Add("DELETE", "/v1/id/account/passkeys/{passkey}", person, none, s.removePasskey)
	table.Add("POST", "/v1/id/account/recovery-codes", person, none, s.makeRecoveryCodes)
}

// NewPasskey is the browser's answer to the challenge for a passkey. Name is that of a new passkey.
type NewPasskey struct {
	Name       string         `json:"name"`
	Credential jsontext.Value `json:"credential"`
}

// issueChallenge sets the cookie of a challenge and returns its options.
func (s *Server) issueChallenge(c *Caller, ceremony factor.Begun) (options any) {
	c.setCookie(s.flowCookie(challengeCookie, ceremony.Cookie, int(factor.Life.Seconds())))
	return ceremony.Options
}

// beginPasskey makes the challenge for using a passkey: to sign in, to step up or to accept an invitation.
func (s *Server) beginPasskey(w http.ResponseWriter, r *request) error {
	ceremony, err := s.Factors.BeginUse()
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, s.issueChallenge(r.caller, ceremony))
}

// beginFirstPasskey makes the challenge for the passkey of an account that does not exist yet.
func (s *Server) beginFirstPasskey(w http.ResponseWriter, r *request) error {
	var body struct {
		Email       string `json:"email"`
		DisplayName string `json:"display_name"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	ceremony, err := s.Factors.BeginNew(body.Email, body.DisplayName)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, s.issueChallenge(r.caller, ceremony))
}

// usePasskey returns the account whose passkey answers the challenge. It counts wrong answers by network.
func (s *Server) usePasskey(ctx context.Context, c *Caller, answer jsontext.Value) (account.Account, error) {
	undo, err := s.flowAttempts.countAttempt(s.Address(c.request), s.Now())
	if err != nil {
		return account.Account{}, err
	}
	who, err := s.Factors.Use(ctx, s.readCookie(c, challengeCookie), answer, s.describeVisit(c))
	s.logins.countAttempt(err)
	s.logRefusal("passkey refused", c, err)
	if err == nil {
		undo()
	}
	return who, err
}

// newPasskeyRefused is the log message for a refused new passkey.
const newPasskeyRefused = "new passkey refused"

// logRefusal logs the reason for a refusal, which the answer does not contain. It ignores all other errors: they appear
// in the log line of the request.
func (s *Server) logRefusal(message string, c *Caller, err error) {
	if err == nil || s.Edge.Logger == nil {
		return
	}
	refused := fault.Of(err)
	if refused.Err == nil {
		return
	}
	switch refused.Kind {
	case fault.Unauthorized, fault.Forbidden, fault.Invalid:
		s.Edge.Logger.Warn(message, "reason", refused.Err.Error(), "network", ratelimit.NetworkOf(s.Address(c.request)))
	}
}

// finishPasskey signs a person in by passkey. It requires neither a password nor another factor, because the
// authenticator has verified the person.
func (s *Server) finishPasskey(w http.ResponseWriter, r *request) error {
	var body struct {
		Credential     jsontext.Value  `json:"credential"`
		OrganizationID id.Organization `json:"organization_id"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	who, err := s.usePasskey(r.Context(), r.caller, body.Credential)
	if err != nil {
		return err
	}
	answer, err := s.enterBy(r.Context(), r.caller, who, body.OrganizationID, account.ByPasskey)
	return writeSignedIn(w, answer, err)
}

func (s *Server) useRecoveryCode(w http.ResponseWriter, r *request) error {
	var body struct {
		Code string `json:"code"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	answer, err := s.UseRecoveryCode(r.Context(), r.caller, body.Code)
	return writeSignedIn(w, answer, err)
}

// UseRecoveryCode completes a sign-in that needs a second factor.
func (s *Server) UseRecoveryCode(ctx context.Context, c *Caller, code string) (*wire.SignedIn, error) {
	who, requested, err := s.Factors.FindSecond(ctx, s.readCookie(c, secondCookie))
	if err != nil {
		return nil, err
	}
	// Check first whether the sign-in can succeed: a refused one must not use up the code.
	if _, err := s.choosePlace(ctx, who.ID, requested, account.ByRecoveryCode); err != nil {
		return nil, err
	}
	err = s.Factors.UseCode(ctx, who, code, s.Address(c.request), s.describeVisit(c))
	s.logins.countAttempt(err)
	if err != nil {
		return nil, err
	}
	return s.enterBy(ctx, c, who, requested, account.ByRecoveryCode)
}

func describePasskey(k factor.Passkey) wire.Passkey {
	return wire.Passkey{ID: k.ID, CredentialID: base64.RawURLEncoding.EncodeToString(k.CredentialID), Name: k.Name,
		CreatedAt: k.CreatedAt, UsedAt: wire.Time(k.UsedAt), BackedUp: k.BackedUp}
}

func (s *Server) listPasskeys(w http.ResponseWriter, r *request) error {
	passkeys, err := s.ListPasskeys(r.Context(), r.caller)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, passkeys)
}

// ListPasskeys returns the passkeys of an account and the number of its unused recovery codes.
func (s *Server) ListPasskeys(ctx context.Context, c *Caller) (wire.Passkeys, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return wire.Passkeys{}, err
	}
	found, err := s.Factors.Summary(ctx, session.Account)
	shown := make([]wire.Passkey, len(found.Passkeys))
	for i, k := range found.Passkeys {
		shown[i] = describePasskey(k)
	}
	return wire.Passkeys{Passkeys: shown, CodesLeft: found.CodesLeft}, err
}

// recentSession returns the session of a caller if the person has recently proved a factor.
func (s *Server) recentSession(ctx context.Context, c *Caller) (*account.Session, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return nil, err
	}
	return session, session.CheckFactor()
}

func (s *Server) beginOwnPasskey(w http.ResponseWriter, r *request) error {
	options, err := s.BeginPasskey(r.Context(), r.caller)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, options)
}

// BeginPasskey makes the challenge for a new passkey of the account and returns its options, which the browser gets as
// JSON.
func (s *Server) BeginPasskey(ctx context.Context, c *Caller) (options any, err error) {
	session, err := s.recentSession(ctx, c)
	if err != nil {
		return nil, err
	}
	ceremony, err := s.Factors.BeginCreation(ctx, session.Person())
	if err != nil {
		return nil, err
	}
	return s.issueChallenge(c, ceremony), nil
}

func (s *Server) addPasskey(w http.ResponseWriter, r *request) error {
	var body NewPasskey
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	added, err := s.AddPasskey(r.Context(), r.caller, body)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, added)
}

// AddPasskey stores a new passkey and ends all other sessions. This session continues under a new token.
func (s *Server) AddPasskey(ctx context.Context, c *Caller, passkey NewPasskey) (wire.Passkey, error) {
	session, err := s.recentSession(ctx, c)
	if err != nil {
		return wire.Passkey{}, err
	}
	made, err := s.checkNewPasskey(c, &passkey)
	if err != nil {
		return wire.Passkey{}, err
	}
	who, added, err := s.Factors.Add(ctx, session.Person(), made, s.describeVisit(c))
	s.logRefusal(newPasskeyRefused, c, err)
	if err == nil {
		_, err = s.replaceSession(ctx, c, who, session)
	}
	if err != nil {
		return wire.Passkey{}, err
	}
	return describePasskey(added), nil
}

func (s *Server) checkNewPasskey(c *Caller, passkey *NewPasskey) (*factor.Created, error) {
	made, err := s.Factors.CheckCreation(s.readCookie(c, challengeCookie), passkey.Name, passkey.Credential)
	s.logRefusal(newPasskeyRefused, c, err)
	return made, err
}

// replaceSession opens a session that replaces one ended by a change of the account's factors. The proof of a factor
// keeps its age.
func (s *Server) replaceSession(
	ctx context.Context, c *Caller, who account.Account, ended *account.Session,
) (*wire.SignedIn, error) {
	visit := s.describeVisit(c)
	visit.SignIn, visit.FactorAt = ended.SignIn, max(ended.FactorAt, account.NoProof)
	return s.openSessionFrom(ctx, c, who, ended.Tenant, visit)
}

func (s *Server) removePasskey(w http.ResponseWriter, r *request) error {
	return writeNoContent(w, s.RemovePasskey(r.Context(), r.caller, chi.URLParam(r.Request, "passkey")))
}

// RemovePasskey removes a passkey and ends all other sessions.
func (s *Server) RemovePasskey(ctx context.Context, c *Caller, passkey string) error {
	session, err := s.recentSession(ctx, c)
	if err != nil {
		return err
	}
	who, err := s.Factors.Remove(ctx, session.Person(), passkey, s.describeVisit(c))
	if err == nil {
		_, err = s.replaceSession(ctx, c, who, session)
	}
	return err
}

func (s *Server) makeRecoveryCodes(w http.ResponseWriter, r *request) error {
	codes, err := s.MakeRecoveryCodes(r.Context(), r.caller)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, codes)
}

// MakeRecoveryCodes makes new recovery codes, which only this answer shows, and ends all other sessions.
func (s *Server) MakeRecoveryCodes(ctx context.Context, c *Caller) (wire.RecoveryCodes, error) {
	session, err := s.recentSession(ctx, c)
	if err != nil {
		return wire.RecoveryCodes{}, err
	}
	who, codes, err := s.Factors.MakeCodes(ctx, session.Person(), s.describeVisit(c))
	if err == nil {
		_, err = s.replaceSession(ctx, c, who, session)
	}
	if err != nil {
		return wire.RecoveryCodes{}, err
	}
	return wire.RecoveryCodes{Codes: codes}, nil
}

// stepUpByPasskey confirms the identity of the session's person by a passkey of the session's account.
func (s *Server) stepUpByPasskey(
	ctx context.Context, c *Caller, answer jsontext.Value,
) (string, *account.Session, error) {
	session, err := s.FindSession(ctx, c)
	if err != nil {
		return "", nil, err
	}
	who, err := s.usePasskey(ctx, c, answer)
	if err != nil {
		return "", nil, err
	}
	if who.ID != session.Account {
		return "", nil, factor.Refuse(errors.New("the passkey belongs to another account"))
	}
	return s.Accounts.StepUpBy(ctx, c.token, s.describeVisit(c))
}

// readCookie returns the value of a cookie set by flowCookie, or "" if the caller has none.
func (s *Server) readCookie(c *Caller, use string) string {
	k, err := c.request.Cookie(s.flowCookieName(use))
	if err != nil {
		return ""
	}
	return k.Value
}
