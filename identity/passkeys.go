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

// newPasskey is the browser's answer to the challenge for a new passkey.
type newPasskey struct {
	Name       string         `json:"name"`
	Credential jsontext.Value `json:"credential"`
}

// writeChallenge sets the cookie of a challenge and answers with its options.
func (s *Server) writeChallenge(w http.ResponseWriter, begun factor.Begun) error {
	http.SetCookie(w, s.flowCookie(challengeCookie, begun.Cookie, int(factor.Life.Seconds())))
	return edge.WriteJSON(w, http.StatusOK, begun.Options)
}

// beginPasskey makes the challenge for using a passkey: to sign in, to step up or to accept an invitation.
func (s *Server) beginPasskey(w http.ResponseWriter, _ *request) error {
	begun, err := s.Factors.BeginUse()
	if err != nil {
		return err
	}
	return s.writeChallenge(w, begun)
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
	begun, err := s.Factors.BeginNew(body.Email, body.DisplayName)
	if err != nil {
		return err
	}
	return s.writeChallenge(w, begun)
}

// usePasskey returns the account whose passkey answers the challenge. It counts wrong answers by network.
func (s *Server) usePasskey(r *request, answer jsontext.Value) (account.Account, error) {
	undo, err := s.flowAttempts.countAttempt(s.Address(r.Request), s.Now())
	if err != nil {
		return account.Account{}, err
	}
	who, err := s.Factors.Use(r.Context(), s.readCookie(r, challengeCookie), answer, s.describeVisit(r))
	s.logins.countAttempt(err)
	s.logRefusal("passkey refused", r, err)
	if err == nil {
		undo()
	}
	return who, err
}

// newPasskeyRefused is the log message for a refused new passkey.
const newPasskeyRefused = "new passkey refused"

// logRefusal logs the reason for a refusal, which the answer does not contain. It ignores all other errors: they appear
// in the log line of the request.
func (s *Server) logRefusal(message string, r *request, err error) {
	if err == nil || s.Edge.Logger == nil {
		return
	}
	refused := fault.Of(err)
	if refused.Err == nil {
		return
	}
	switch refused.Kind {
	case fault.Unauthorized, fault.Forbidden, fault.Invalid:
		s.Edge.Logger.Warn(message, "reason", refused.Err.Error(), "network", ratelimit.NetworkOf(s.Address(r.Request)))
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
	who, err := s.usePasskey(r, body.Credential)
	if err != nil {
		return err
	}
	return s.enterBy(w, r, who, body.OrganizationID, account.ByPasskey)
}

// enterBy completes a sign-in to the requested organization.
func (s *Server) enterBy(
	w http.ResponseWriter, r *request, who account.Account, requested id.Organization, by account.Method,
) error {
	who, by, err := s.finishLink(w, r, who, by)
	if err != nil {
		return err
	}
	tenant, err := s.chooseOrganization(r.Context(), who.ID, requested, by)
	if err != nil {
		return err
	}
	answer, err := s.openSession(w, r, who, tenant, by)
	return writeSignedIn(w, answer, err)
}

// requireSecondFactor answers a sign-in to an account that has second factors. The cookie it sets is not a session.
func (s *Server) requireSecondFactor(
	w http.ResponseWriter, who account.Account, requested id.Organization, second []string,
) error {
	cookie, err := s.Factors.BeginSecond(who, requested)
	if err != nil {
		return err
	}
	http.SetCookie(w, s.flowCookie(secondCookie, cookie, int(factor.Life.Seconds())))
	return edge.WriteJSON(w, http.StatusOK, wire.SecondFactor{SecondFactor: second})
}

// useRecoveryCode completes a sign-in that needs a second factor.
func (s *Server) useRecoveryCode(w http.ResponseWriter, r *request) error {
	var body struct {
		Code string `json:"code"`
	}
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	who, requested, err := s.Factors.FindSecond(r.Context(), s.readCookie(r, secondCookie))
	if err != nil {
		return err
	}
	// Check first whether the sign-in can succeed: a refused one must not use up the code.
	if _, err := s.choosePlace(r.Context(), who.ID, requested, account.ByRecoveryCode); err != nil {
		return err
	}
	err = s.Factors.UseCode(r.Context(), who, body.Code, s.Address(r.Request), s.describeVisit(r))
	s.logins.countAttempt(err)
	if err != nil {
		return err
	}
	return s.enterBy(w, r, who, requested, account.ByRecoveryCode)
}

func describePasskey(k factor.Passkey) wire.Passkey {
	return wire.Passkey{ID: k.ID, CredentialID: base64.RawURLEncoding.EncodeToString(k.CredentialID), Name: k.Name,
		CreatedAt: k.CreatedAt, UsedAt: wire.Time(k.UsedAt), BackedUp: k.BackedUp}
}

func (s *Server) listPasskeys(w http.ResponseWriter, r *request) error {
	session, err := s.currentSession(r)
	if err != nil {
		return err
	}
	passkeys, err := s.ListPasskeys(r.Context(), session)
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusOK, passkeys)
}

// ListPasskeys returns the passkeys of an account and the number of its unused recovery codes.
func (s *Server) ListPasskeys(ctx context.Context, session *account.Session) (wire.Passkeys, error) {
	found, err := s.Factors.Summary(ctx, session.Account)
	shown := make([]wire.Passkey, len(found.Passkeys))
	for i, k := range found.Passkeys {
		shown[i] = describePasskey(k)
	}
	return wire.Passkeys{Passkeys: shown, CodesLeft: found.CodesLeft}, err
}

// recentSession returns the session of a request if the person has recently proved a factor.
func (s *Server) recentSession(r *request) (*account.Session, error) {
	session, err := s.currentSession(r)
	if err != nil {
		return nil, err
	}
	return session, session.CheckFactor()
}

func (s *Server) beginOwnPasskey(w http.ResponseWriter, r *request) error {
	session, err := s.recentSession(r)
	if err != nil {
		return err
	}
	begun, err := s.Factors.BeginCreation(r.Context(), session.Person())
	if err != nil {
		return err
	}
	return s.writeChallenge(w, begun)
}

// addPasskey stores a new passkey and ends all other sessions. This session continues under a new token.
func (s *Server) addPasskey(w http.ResponseWriter, r *request) error {
	session, err := s.recentSession(r)
	if err != nil {
		return err
	}
	var body newPasskey
	if err := r.decodeBody(&body); err != nil {
		return err
	}
	made, err := s.checkNewPasskey(r, &body)
	if err != nil {
		return err
	}
	who, added, err := s.Factors.Add(r.Context(), session.Person(), made, s.describeVisit(r))
	s.logRefusal(newPasskeyRefused, r, err)
	if err != nil {
		return err
	}
	if err := s.continueSession(w, r, who, session); err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, describePasskey(added))
}

func (s *Server) checkNewPasskey(r *request, passkey *newPasskey) (*factor.Created, error) {
	made, err := s.Factors.CheckCreation(s.readCookie(r, challengeCookie), passkey.Name, passkey.Credential)
	s.logRefusal(newPasskeyRefused, r, err)
	return made, err
}

// continueSession opens a session that replaces one ended by a change of the account's factors. The proof of a factor
// keeps its age.
func (s *Server) continueSession(w http.ResponseWriter, r *request, who account.Account, ended *account.Session) error {
	_, err := s.replaceSession(w, r, who, ended)
	return err
}

// replaceSession is continueSession that also returns the answer of a sign-in.
func (s *Server) replaceSession(
	w http.ResponseWriter, r *request, who account.Account, ended *account.Session,
) (*wire.SignedIn, error) {
	visit := s.describeVisit(r)
	visit.SignIn, visit.FactorAt = ended.SignIn, max(ended.FactorAt, account.NoProof)
	return s.openSessionFrom(w, r, who, ended.Tenant, visit)
}

// removePasskey removes a passkey and ends all other sessions.
func (s *Server) removePasskey(w http.ResponseWriter, r *request) error {
	session, err := s.recentSession(r)
	if err != nil {
		return err
	}
	who, err := s.Factors.Remove(r.Context(), session.Person(), chi.URLParam(r.Request, "passkey"), s.describeVisit(r))
	if err == nil {
		err = s.continueSession(w, r, who, session)
	}
	if err != nil {
		return err
	}
	edge.WriteNoContent(w)
	return nil
}

// makeRecoveryCodes makes new recovery codes, which only this answer shows, and ends all other sessions.
func (s *Server) makeRecoveryCodes(w http.ResponseWriter, r *request) error {
	session, err := s.recentSession(r)
	if err != nil {
		return err
	}
	who, codes, err := s.Factors.MakeCodes(r.Context(), session.Person(), s.describeVisit(r))
	if err == nil {
		err = s.continueSession(w, r, who, session)
	}
	if err != nil {
		return err
	}
	return edge.WriteJSON(w, http.StatusCreated, wire.RecoveryCodes{Codes: codes})
}

// stepUpByPasskey confirms the identity of the session's person by a passkey of the session's account.
func (s *Server) stepUpByPasskey(r *request, answer jsontext.Value) (string, *account.Session, error) {
	session, err := s.currentSession(r)
	if err != nil {
		return "", nil, err
	}
	who, err := s.usePasskey(r, answer)
	if err != nil {
		return "", nil, err
	}
	if who.ID != session.Account {
		return "", nil, factor.Refuse(errors.New("the passkey belongs to another account"))
	}
	return s.Accounts.StepUpBy(r.Context(), s.sessionToken(r.Request), s.describeVisit(r))
}

// readCookie returns the value of a cookie set by flowCookie, or "" if the request has none.
func (s *Server) readCookie(r *request, use string) string {
	c, err := r.Cookie(s.flowCookieName(use))
	if err != nil {
		return ""
	}
	return c.Value
}
