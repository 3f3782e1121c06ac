package policystore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// The processor time of an evaluation begins when it first checks whether it must end.
func TestPatience(t *testing.T) {
	var spent time.Duration
	parent, cancel := context.WithCancel(t.Context())
	p := &timeLimit{Context: parent, spent: func() time.Duration { return spent }}
	defer p.releaseThread()
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{time.Hour, true}, {maxTime, true}, {time.Millisecond, false}} {
		spent += step.after
		if err := p.Err(); (err == nil) != step.want || err != nil && !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s later: got %v", step.after, err)
		}
	}
	cancel()
	if err := p.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended: got %v", err)
	}
}

// An evaluation that takes too long, or whose request ends, is an error and not a decision. A cheap one does not check
// the time.
func TestApplyEnds(t *testing.T) {
	p, err := policy.Parse([]byte(`{"policy_id":"p","version":1,"name":"n","rules":[{"rule_id":"r","tool":"**","decision":"deny","when":"payload.s.matches('(a+)+(b+)+$')"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	c, err := policy.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	at := func(n int) policy.Input {
		return policy.Input{Tool: "a", Agent: "b", ActorType: "agent", ActionKind: "tool_call", Payload: fmt.Appendf(nil, `{"s":"%s"}`, strings.Repeat("a", n)), Now: 1}
	}
	var spent time.Duration
	over := &timeLimit{Context: t.Context(), spent: func() time.Duration { spent += maxTime; return spent }}
	defer over.releaseThread()
	if err := over.Err(); err != nil { // begins
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		n    int
		want fault.Kind
	}{
		{"too long", over, 50_000, fault.Unavailable},
		{"cheap", over, 10, 0},
	} {
		e, err := c.EvaluateWithin(tc.ctx, at(tc.n))
		if fault.Is(err, tc.want) != (tc.want != 0) || (err == nil) != (e.Settle(nil).RuleID != "") {
			t.Errorf("%s: got %+v, %v", tc.name, e.Settle(nil), err)
		}
	}
	if _, err := Apply(ended, c, at(50_000)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: got %v", err)
	}
	if e, err := Apply(ended, c, at(10)); err != nil || e.Settle(nil).Decision != id.Allow {
		t.Errorf("cheap and ended: got %+v, %v", e.Settle(nil), err)
	}
	if e, err := Apply(ended, nil, at(10)); err != nil || e.Settle(nil).PolicyID != policy.None {
		t.Errorf("no policy: got %+v, %v", e.Settle(nil), err)
	}
}

// The kernel's processor time of this thread increases with work.
func TestThreadTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, until := threadCPUTime(), time.Now().Add(2*time.Minute)
	for threadCPUTime()-before < 10*time.Millisecond {
		if time.Now().After(until) {
			t.Fatalf("got %s after two minutes of work", threadCPUTime()-before)
		}
	}
}
