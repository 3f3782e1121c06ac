package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

// older is a source of policies in which one organization has a policy that was stored before policies were bounded.
type older struct {
	policystore.ActiveSource
	tenant   id.Tenant
	compiled *policy.Compiled
}

func (o *older) Active(ctx context.Context, s *log.State) (*policy.Compiled, error) {
	if s.Identity().Tenant == o.tenant {
		return o.compiled, nil
	}
	return o.ActiveSource.Active(ctx, s)
}

// dear returns a policy with n conditions on a text, stored before policies were bounded. Nine of `a{0,490}z0` took
// 17 seconds for a text of 240,000 bytes.
func dear(t *testing.T, n int, pattern string) *policy.Compiled {
	var rules []string
	for i := range n {
		rules = append(rules, fmt.Sprintf(`{"rule_id":"r%d","tool":"**","decision":"deny","when":"payload.s.matches('%s%d')"}`, i, pattern, i))
	}
	p, err := policy.ParseStored(fmt.Appendf(nil, `{"policy_id":"dear","version":1,"name":"n","rules":[%s]}`, strings.Join(rules, ",")))
	if err != nil {
		t.Fatal(err)
	}
	c, err := policy.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// One organization evaluates the most expensive policy many times concurrently. The answer is that the policy costs
// too much, which denies. The other organization's questions and events are not affected.
func TestDearPolicyBesideNeighbour(t *testing.T) {
	for _, tc := range []struct {
		name     string
		compiled *policy.Compiled
		n, times int
		want     string
	}{
		{"a long text", dear(t, 9, "a{0,490}z"), 240_000, 16, "more than 65536 bytes"},
		{"a shorter text", dear(t, 9, "a{0,490}z"), 60_000, 16, "costs too much"},
		{"many patterns", dear(t, 200, "a{0,9}z"), 16_000, 4, "costs too much"},
	} {
		t.Run(tc.name, func(t *testing.T) { besideNeighbour(t, tc.compiled, tc.n, tc.times, tc.want) })
	}
}

func besideNeighbour(t *testing.T, compiled *policy.Compiled, n, times int, want string) {
	w := newWorld(t, func(o *ingest.Options) {
		o.Policies = &older{ActiveSource: o.Policies, tenant: ledgertest.Red, compiled: compiled}
	})
	w.activate(&w.blue, "pol-1", rules)
	body := w.question(&w.red, fields{"payload": fields{"s": strings.Repeat("a", n)}})
	var group sync.WaitGroup
	for range times {
		group.Go(func() {
			a := w.post(evaluatePath, w.red.token, body)
			if reason, _ := a.fields["reason"].(string); a.Code != http.StatusOK || a.fields["decision"] != "deny" || !strings.Contains(reason, want) {
				w.Errorf("got %d %s, want a deny with %q", a.Code, a.Body, want)
			}
		})
	}
	for i := range 20 {
		if a := w.post(evaluatePath, w.blue.token, w.question(&w.blue, fields{"tool_name": "acme.deny"})); a.fields["rule_id"] != "no" {
			w.Errorf("the other's question: got %d %s", a.Code, a.Body)
		}
		w.mustCreate(&w.blue, fmt.Sprintf("e%d", i), nil)
	}
	group.Wait()
}

// An evaluation whose request has ended is not a decision.
func TestEvaluationEndsWithItsRequest(t *testing.T) {
	w := newWorld(t, func(o *ingest.Options) {
		o.Policies = &older{ActiveSource: o.Policies, tenant: ledgertest.Red, compiled: dear(t, 9, "(a+)+(b+)+$")}
	})
	body := w.question(&w.red, fields{"payload": fields{"s": strings.Repeat("a", 20_000)}})
	w.post(evaluatePath, w.red.token, body) // the key is cached from now on
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest(http.MethodPost, evaluatePath, strings.NewReader(body)).WithContext(ctx)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.red.token)
	a := httptest.NewRecorder()
	w.handler.ServeHTTP(a, r)
	if a.Code != http.StatusServiceUnavailable || !strings.Contains(a.Body.String(), "The request ended before its response") {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
}
