package console

import (
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const sessionsPath = "/account/sessions"

// sessionsView is the content of the page of sessions and login events.
type sessionsView struct {
	Sessions []wire.Session
	Events   []wire.LoginEvent
}

func (p *pages) showSessions(r *page.Request) (any, error) {
	sessions, err := visitOf(r).Identity.ListSessions(r.Context(), visitOf(r).person)
	if err != nil {
		return nil, err
	}
	events, err := visitOf(r).Identity.ListLoginEvents(r.Context(), visitOf(r).person)
	return sessionsView{sessions.Sessions, events.Events}, err
}

func (p *pages) endSession(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.EndSession(r.Context(), visitOf(r).person, r.Value("session_id"))
	return page.GoTo(r.Address(sessionsPath), "session-ended"), err
}

func (p *pages) endOtherSessions(r *page.Request) (page.Outcome, error) {
	err := visitOf(r).Identity.EndOtherSessions(r.Context(), visitOf(r).person)
	return page.GoTo(r.Address(sessionsPath), "sessions-ended"), err
}
