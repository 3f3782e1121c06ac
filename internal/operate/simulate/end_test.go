package simulate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/simulate"
	"github.com/agentledger/agentledger/policy"
)

// A simulation and a trial end with their requests, and free their slot for the next one.
func TestRehearsalEndsWithItsRequest(t *testing.T) {
	w := newWorld(t)
	_, expensive := compile(t, `[{"rule_id":"r","tool":"**","decision":"deny","when":"payload.s.matches('(a+)+(b+)+$')"}]`)
	long := `{"s":"` + strings.Repeat("a", 20_000) + `"}`
	for _, tenant := range []id.Tenant{red, blue} {
		w.send(tenant, nil, "acme.pay.refund", long, id.Allow)
	}
	r := w.newSimulator()
	ctx, cancel := context.WithCancel(t.Context())
	w.during = cancel
	if report, err := r.SimulateEvents(ctx, red, *expensive, simulate.Range{Last: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", report, err)
	}
	trial := policy.Trial{Input: policy.Input{Tool: "acme.pay.refund", Agent: "a", ActorType: "agent", ActionKind: "tool_call", Payload: []byte(long)}}
	if x, err := r.EvaluateTrial(ctx, red, *expensive, &trial); !errors.Is(err, context.Canceled) {
		t.Errorf("trial: got %+v, %v", x, err)
	}
	w.during = nil
	for _, tenant := range []id.Tenant{red, blue} {
		if got, err := r.SimulateEvents(t.Context(), tenant, *expensive, simulate.Range{Last: 10}); err != nil || !got.Complete || got.Evaluated != 1 {
			t.Errorf("tenant %d, afterwards: got %+v, %v", tenant, got, err)
		}
	}
}
