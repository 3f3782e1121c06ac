package console

import (
	"net/http"
	"net/url"

	"github.com/agentledger/agentledger/web/screen"
)

const (
	sessionCalls = "/v1/id/account/sessions"
	sessionsPath = "/account/sessions"
)

// sessionsView is the content of the page of sessions and login events.
type sessionsView struct {
	Sessions []session    `json:"sessions"`
	Events   []loginEvent `json:"login_events"`
}

// session is a session of the account.
type session struct {
	ID           string        `json:"session_id"`
	Current      bool          `json:"current"`
	Organization *screen.Place `json:"organization"` // nil for one that the account left
	OpenedAt     string        `json:"opened_at"`
	SeenAt       string        `json:"seen_at"`
	ExpiresAt    string        `json:"expires_at"`
	Address      string        `json:"address"`
	Program      string        `json:"program"`
}

// loginEvent is a change of the way into the account.
type loginEvent struct {
	At      string `json:"at"`
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Program string `json:"program"`
}

func (p *pages) showSessions(r *screen.Request) (any, error) {
	var v sessionsView
	if err := r.Read(sessionCalls, nil, &v); err != nil {
		return nil, err
	}
	err := r.Read("/v1/id/account/login-events", nil, &v)
	return v, err
}

func (p *pages) endSession(r *screen.Request) (screen.Outcome, error) {
	err := r.Change(http.MethodDelete, sessionCalls+"/"+url.PathEscape(r.Value("session_id")), nil, nil)
	return screen.GoTo(r.Address(sessionsPath), "session-ended"), err
}

func (p *pages) endOtherSessions(r *screen.Request) (screen.Outcome, error) {
	err := r.Change(http.MethodDelete, sessionCalls, nil, nil)
	return screen.GoTo(r.Address(sessionsPath), "sessions-ended"), err
}
