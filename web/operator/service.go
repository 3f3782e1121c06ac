package operator

import (
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// Health is the health of the service.
type Health struct {
	Status string `json:"status"`           // ok, read_only or unavailable
	Reason string `json:"reason,omitempty"` // why it is unavailable
}

// state is the health of the service and of its clock.
type state struct {
	Health
	Clock wire.Clock
}

// readState returns the state of the process that serves this page; another process of the same store may answer
// differently.
func (p *pages) readState(r *page.Request) state {
	return state{p.FindHealth(r.Context()), p.Identity.Operator.ShowClock()}
}

// serviceView is the content of the service page.
type serviceView struct {
	state
	PublicURL, Version string
	Directory          string // slug of the directory's organization; "" if none
}

func (p *pages) showService(r *page.Request) (any, error) {
	return serviceView{state: p.readState(r), PublicURL: p.PublicURL, Version: p.Version, Directory: p.Directory}, nil
}

// acceptClock accepts the machine's clock as correct.
func (p *pages) acceptClock(r *page.Request) (page.Outcome, error) {
	p.Identity.Operator.AcceptClock()
	return page.GoTo(r.Address(servicePage), "clock-accepted"), nil
}
