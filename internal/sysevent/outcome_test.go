package sysevent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
)

// "Another node has the organization" means that nothing was done. A call whose statement was committed never gets
// that answer.
func TestOutcomeOfACall(t *testing.T) {
	s := newService(t)
	other := errors.New("another error")
	lost := fmt.Errorf("read back: %w", log.ErrNotOwner)
	nothing := func(context.Context, *log.State) (sysevent.Change, error) { return sysevent.Change{}, nil }
	for _, c := range []struct {
		name      string
		prepare   func(context.Context, *log.State) (sysevent.Change, error)
		err, want error
	}{
		{"nothing was stated", nothing, lost, lost},
		{"stated", act(sysevent.AgentCreated, 1, 0), lost, nil},
		{"stated, with another error", act(sysevent.AgentCreated, 2, 1), other, other},
	} {
		ctx, check := sysevent.WithOutcome(t.Context())
		if _, err := s.SystemEvents.Append(ctx, red, "acc_1", c.prepare); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		_, neighbour := sysevent.WithOutcome(t.Context())
		if got := neighbour(c.err); got != c.err {
			t.Errorf("%s: another call got %v", c.name, got)
		}
		switch got := check(c.err); {
		case c.want == nil && (!fault.Is(got, fault.OutcomeUnknown) || fault.Of(got).Code != "outcome_unknown"):
			t.Errorf("%s: got %v, want an unknown outcome", c.name, got)
		case c.want != nil && got != c.want:
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if check(nil) != nil {
			t.Errorf("%s: no error became one", c.name)
		}
	}
}
