package approval_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

var activationRounds = flag.Int("activation-rounds", 8, "how many random policies TestActivationOracle activates on each engine")

// install activates a policy with these rules.
func (w *world) install(tenant id.Tenant, name string, rules ...string) {
	w.t.Helper()
	w.draft(tenant, name, rules...)
	if _, err := w.book.Activate(w.t.Context(), tenant, "acc_rules", name); err != nil {
		w.t.Fatal(err)
	}
}

// foresee returns the forecast for the activation of a draft, or of no policy if name is "".
func (w *world) foresee(tenant id.Tenant, name string) approval.Forecast {
	w.t.Helper()
	var next *policy.Compiled
	if name != "" {
		v, err := w.book.Get(w.t.Context(), tenant, name, 0)
		if err != nil {
			w.t.Fatal(err)
		}
		p, err := policy.ParseStored(v.Document)
		if err == nil {
			next, err = policy.CompileWithin(w.t.Context(), p)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	f, err := w.approvals.Foresee(w.t.Context(), tenant, next)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) draft(tenant id.Tenant, name string, rules ...string) {
	w.t.Helper()
	document := `{"policy_id":"` + name + `","name":"n","rules":[` + strings.Join(rules, ",") + `]}`
	if _, err := w.book.Create(w.t.Context(), tenant, "acc_rules", []byte(document)); err != nil {
		w.t.Fatal(err)
	}
}

// obliging is a rule that requires approval.
func obliging(rule string, quorum, life int, more string) string {
	return fmt.Sprintf(`{"rule_id":"%s","tool":"acme.refund","decision":"allow_with_obligation",
		"obligations":[{"type":"human_approval","approvals":%d,"ttl_seconds":%d}]%s}`, rule, quorum, life, more)
}

// An approval of two users within 600 s remains valid while the same rule of the new policy asks for the same or
// less.
func TestApprovalsOverActivation(t *testing.T) {
	const kept, over = approval.Pending, approval.Invalidated
	same := obliging("refund", 2, 600, "")
	limit := func(max int) string {
		return fmt.Sprintf(`,"limit":{"limit_id":"l","count":true,"by":"organization","window_seconds":60,"max":%d}`, max)
	}
	for name, tt := range map[string]struct {
		rules []string
		want  approval.Status
	}{
		"the same rule":                {[]string{same}, kept},
		"another rule beside it":       {[]string{`{"rule_id":"x","tool":"acme.other","decision":"deny"}`, same}, kept},
		"a weaker quorum":              {[]string{obliging("refund", 1, 600, "")}, kept},
		"a stronger quorum":            {[]string{obliging("refund", 3, 600, "")}, over},
		"more time":                    {[]string{obliging("refund", 2, 601, "")}, kept},
		"less time":                    {[]string{obliging("refund", 2, 599, "")}, over},
		"fewer people, less time":      {[]string{obliging("refund", 1, 60, "")}, over},
		"another rule id":              {[]string{obliging("refunds", 2, 600, "")}, over},
		"another rule decides first":   {[]string{obliging("first", 1, 600, ""), same}, over},
		"a deny rule above":            {[]string{same, `{"rule_id":"no","tool":"acme.**","decision":"deny"}`}, over},
		"a deny rule in the shadow":    {[]string{same, `{"rule_id":"no","tool":"acme.**","mode":"shadow","decision":"deny"}`}, kept},
		"the rule denies":              {[]string{`{"rule_id":"refund","tool":"acme.refund","decision":"deny"}`}, over},
		"the rule allows":              {[]string{`{"rule_id":"refund","tool":"acme.refund","decision":"allow"}`}, over},
		"the rule is gone":             {nil, over},
		"the rule is a shadow":         {[]string{obliging("refund", 2, 600, `,"mode":"shadow"`)}, over},
		"a condition that holds":       {[]string{obliging("refund", 2, 600, `,"when":"payload.amount > 5"`)}, kept},
		"a condition that fails":       {[]string{obliging("refund", 2, 600, `,"when":"payload.amount > 50"`)}, over},
		"a field that is absent":       {[]string{obliging("refund", 2, 600, `,"when":"payload.customer == \"x\""`)}, kept}, // errors require approval
		"denied by an absent field":    {[]string{same, `{"rule_id":"no","tool":"acme.refund","decision":"deny","when":"payload.customer == \"x\""}`}, over},
		"for this agent alone":         {[]string{obliging("refund", 2, 600, `,"agents":["agt_nobody"]`)}, over},
		"by the hour of the question":  {[]string{obliging("refund", 2, 600, `,"when":"now <= timestamp(\"%NOW\")"`)}, kept},
		"beyond a limit":               {[]string{obliging("refund", 2, 600, limit(100))}, kept},
		"another's limit, not reached": {[]string{same, `{"rule_id":"no","tool":"acme.refund","decision":"deny"` + limit(0) + `}`}, kept},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.install(red, "before", same)
			w.install(blue, "before", same)
			a, other := w.ask(red, w.question(red)), w.ask(blue, w.question(blue))
			w.approve(red, a, bob)
			asked := id.InstantOf(w.Clock()).String()
			w.Pass(time.Minute)
			for i := range tt.rules {
				tt.rules[i] = strings.ReplaceAll(tt.rules[i], "%NOW", asked)
			}
			w.install(red, "after", tt.rules...)
			if got := w.status(red, a); got != tt.want {
				t.Fatalf("at once: got %s, want %s", got, tt.want)
			}
			w.approvals.PolicyChanged(red)
			if err := w.approvals.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := w.status(red, a); got != tt.want {
				t.Errorf("after the sweep: got %s, want %s", got, tt.want)
			}
			stated := []string{"requested by ik_operator", "voted by acc_bob"}
			if tt.want == over {
				stated = append(stated, "invalidated by operator")
			}
			if got := w.transitions(red, a); !slices.Equal(got, stated) {
				t.Errorf("ledger: got %q, want %q", got, stated)
			}
			if got := w.status(blue, other); got != approval.Pending {
				t.Errorf("the other organization: got %s", got)
			}
			if tt.want == over {
				return
			}
			w.approve(red, a, eve) // the earlier vote and the earlier quorum count
			if err := consumeErr(w, red, a); err != nil {
				t.Errorf("consume: %v", err)
			}
		})
	}
}

// Without an active policy, no approval can be requested.
func TestNoPolicyInvalidates(t *testing.T) {
	w := newWorld(t)
	a, other := w.ask(red, w.question(red)), w.ask(blue, w.question(blue))
	if got, want := w.foresee(red, ""), (approval.Forecast{End: 1}); got != want {
		t.Errorf("foreseen %+v, want %+v", got, want)
	}
	if _, err := w.book.Deactivate(t.Context(), red, "acc_rules", "refunds"); err != nil {
		t.Fatal(err)
	}
	if got := w.status(red, a); got != approval.Invalidated {
		t.Errorf("got %s", got)
	}
	if got := w.status(blue, other); got != approval.Pending {
		t.Errorf("the other organization: got %s", got)
	}
}

// Oracle: the other organization gets the same policy and the same question as a new one. Its answer determines
// whether the approval is still valid. A process that dies between the activation and the statement changes nothing.
//
// Each engine gets the same policies.
func TestActivationOracle(t *testing.T) { onEngines(t, activationOracle) }

func activationOracle(t *testing.T, w *world) {
	random := rand.New(rand.NewPCG(11, 11))
	kept := 0
	for round := range *activationRounds {
		w.install(red, fmt.Sprint("before-", round), obliging("refund", 2, 600, ""))
		a := w.ask(red, w.question(red))
		rules := randomRules(random)
		name := fmt.Sprint("after-", round)
		w.draft(red, name, rules...)
		foreseen := w.foresee(red, name)
		if got := w.status(red, a); got != approval.Pending {
			t.Fatalf("round %d: a forecast changed the status to %s", round, got)
		}
		if _, err := w.book.Activate(t.Context(), red, "acc_rules", name); err != nil {
			t.Fatal(err)
		}
		w.install(blue, fmt.Sprint("after-", round), rules...)
		want := approval.Invalidated
		b, _, err := w.approvals.Ask(t.Context(), blue, w.question(blue))
		switch {
		case fault.Is(err, fault.Invalid): // no approval needed
		case err != nil:
			t.Fatal(err)
		default:
			if b.RuleID == "refund" && b.Quorum <= 2 && b.ExpiresAt-b.CreatedAt >= 600_000 {
				want = approval.Pending
				kept++
			}
			if err := w.approvals.Cancel(t.Context(), blue, b.IngestKeyID, b.ID); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.status(red, a); got != want {
			t.Fatalf("round %d: got %s, want %s under %s", round, got, want, rules)
		}
		forecast := approval.Forecast{End: 1}
		if want == approval.Pending {
			forecast = approval.Forecast{Stay: 1}
		}
		if foreseen != forecast {
			t.Fatalf("round %d: foreseen %+v, want %+v under %s", round, foreseen, forecast, rules)
		}
		if round%3 == 0 { // the process forgets the activation
			w.open()
		} else {
			w.approvals.PolicyChanged(red)
		}
		if got := w.status(red, a); got != want {
			t.Fatalf("round %d, another process: got %s, want %s", round, got, want)
		}
		if err := w.approvals.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		told := w.transitions(red, a)
		if stated := told[len(told)-1] == "invalidated by operator"; stated != (want == approval.Invalidated) {
			t.Fatalf("round %d: want %s, ledger %q", round, want, told)
		}
		if want == approval.Pending {
			if err := w.approvals.Cancel(t.Context(), red, a.IngestKeyID, a.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	if rounds := *activationRounds; kept < rounds/8 || kept > rounds*7/8 {
		t.Errorf("%d of %d were kept: the policies are too alike", kept, rounds)
	}
}

func randomRules(random *rand.Rand) []string {
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	rules := make([]string, 1+random.IntN(3))
	names := []string{"refund", "other", "third"}
	if random.IntN(3) == 0 {
		names[0], names[1] = names[1], names[0]
	}
	for i := range rules {
		more := pick("", "", `,"mode":"shadow"`, `,"priority":1`, `,"when":"payload.amount > 5"`, `,"when":"payload.amount > 50"`)
		if random.IntN(3) > 0 {
			rules[i] = obliging(names[i], 1+random.IntN(3), []int{300, 600, 900}[random.IntN(3)], more)
			continue
		}
		rules[i] = fmt.Sprintf(`{"rule_id":"%s","tool":"%s","decision":"%s"%s}`, names[i],
			pick("acme.*", "acme.other"), pick("deny", "allow"), more)
	}
	return rules
}

// If the policies cannot be read, an approval is neither usable nor ended.
func TestUnreadablePolicyEndsNothing(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	broken := approval.New(approval.Options{
		Records: w.Engine, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: noAnswer{}, Agents: w.agents,
		Organizations: w.people, Members: w.people, Keyring: w.Keyring(), Clock: w.Clock, Webhooks: w.webhooks,
	})
	_, err := broken.Get(t.Context(), red, a.IngestKeyID, a.ID, 0)
	wantKind(t, "get", err, fault.Unavailable)
	_, err = broken.Consume(t.Context(), red, a.ID, w.claim(red, a))
	wantKind(t, "consume", err, fault.Unavailable)
	if got := w.transitions(red, a); len(got) != 1 {
		t.Errorf("ledger: got %q", got)
	}
}

type noAnswer struct{}

func (noAnswer) Active(context.Context, *log.State) (*policy.Compiled, error) {
	return nil, fault.New(fault.Unavailable, "Policies can't be read")
}

// A forecast evaluates a policy for a bounded number of approvals. Those that time has ended are not open.
func TestForecastIsBounded(t *testing.T) {
	w := newWorld(t)
	w.install(red, "before", obliging("refund", 1, 600, ""))
	w.draft(red, "after", obliging("refund", 1, 600, `,"when":"payload.amount > 100"`))
	const asked = 203
	for i := range asked {
		q := w.question(red)
		q.Payload = fmt.Appendf(nil, `{"amount":%d}`, i)
		w.ask(red, q)
	}
	w.ask(blue, w.question(blue))
	got := w.foresee(red, "after")
	if got.Unknown != 3 || got.Stay+got.End != 200 || got.Stay < 90 || got.End < 90 {
		t.Errorf("got %+v", got)
	}
	if got := w.foresee(red, "before"); got != (approval.Forecast{Stay: asked}) {
		t.Errorf("the active policy: got %+v", got)
	}
	w.Pass(11 * time.Minute)
	if got := w.foresee(red, "after"); got != (approval.Forecast{}) {
		t.Errorf("after their time: got %+v", got)
	}
}
