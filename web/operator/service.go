package operator

import (
	"errors"
	"net/http"

	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

const (
	clockCall  = "/v1/id/platform/clock"
	healthCall = "/health"
)

// state is the health of the service and of its clock.
type state struct {
	Status string     `json:"status"` // ok, read_only or unavailable
	Reason string     `json:"reason"` // why it is unhealthy
	Clock  wire.Clock `json:"-"`
}

// readState reads the state of the process that serves this page; another process of the same store may answer
// differently.
func readState(r *page.Request) (s state, err error) {
	err = r.Read(healthCall, nil, &s)
	var refused *page.Refusal
	if errors.As(err, &refused) && refused.Status == http.StatusServiceUnavailable {
		s, err = state{Status: "unavailable", Reason: refused.Reason}, nil
	}
	if err == nil {
		err = r.Read(clockCall, nil, &s.Clock)
	}
	return s, err
}

// serviceView is the content of the service page.
type serviceView struct {
	state
	PublicURL, Version string
	Directory          string // slug of the directory's organization; "" if none
}

func (p *pages) showService(r *page.Request) (any, error) {
	now, err := readState(r)
	return serviceView{state: now, PublicURL: p.PublicURL, Version: p.Version, Directory: p.Directory}, err
}

// acceptClock accepts the machine's clock as correct.
func acceptClock(r *page.Request) (page.Outcome, error) {
	err := r.Change(http.MethodPost, clockCall, map[string]bool{"accept": true}, nil)
	return page.GoTo(r.Address(servicePage), "clock-accepted"), err
}
