package policy_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

func input(tool string, agent id.Agent) policy.Input {
	return policy.Input{Tool: id.Tool(tool), Agent: agent, ActorType: "agent", ActionKind: "tool_call"}
}

// testPolicy returns a policy with the rules that denies by default.
func testPolicy(rules ...policy.Rule) policy.Policy {
	for i := range rules {
		if rules[i].ID == "" {
			rules[i].ID = fmt.Sprintf("r%d", i)
		}
		rules[i].Decision = max(rules[i].Decision, id.Allow)
		rules[i].Mode = max(rules[i].Mode, policy.Enforce)
		if rules[i].OnError == 0 {
			rules[i].OnError = policy.MatchOnError
			if rules[i].Decision == id.Allow {
				rules[i].OnError = policy.SkipOnError
			}
		}
	}
	return policy.Policy{ID: "pol_1", Name: "test", Version: 1, Default: id.Deny, Rules: rules}
}

func compile(t testing.TB, p policy.Policy) *policy.Compiled {
	t.Helper()
	c, err := policy.Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// decide evaluates with no limit exceeded.
func decide(c *policy.Compiled, in policy.Input) policy.Outcome {
	e := c.Evaluate(in)
	return e.Settle(func(*policy.Claim) bool { return false })
}

func TestEvaluate(t *testing.T) {
	p := parse(t, refunds)
	c := compile(t, p)
	for _, tc := range []struct {
		tool   string
		agent  id.Agent
		want   id.Decision
		rule   string
		reason string
		shadow []string
	}{
		{"acme.mail.send", "agt_9", id.Allow, "read", "Rule read says allow.", nil},
		{"acme.pay.refund", "agt_1", id.AllowWithObligation, "big-refund", "Ask élan", []string{"trial"}},
		{"acme.pay.refund", "agt_9", id.Allow, "read", "Rule read says allow.", []string{"trial"}},
		{"other.pay.x", "agt_1", id.Deny, "default", "No rule matches; the policy's default is deny.", []string{"trial"}},
		{"ACME.mail.send", "agt_1", id.Deny, "default", "No rule matches; the policy's default is deny.", nil},
		{"", "agt_1", id.Deny, "default", "No rule matches; the policy's default is deny.", nil},
	} {
		got := decide(c, input(tc.tool, tc.agent))
		want := policy.Outcome{
			Decision: tc.want, PolicyID: "pol_refunds", PolicyVersion: 3, PolicyDigest: p.Digest(),
			RuleID: tc.rule, Reason: tc.reason, Engine: "rules", Shadow: tc.shadow,
		}
		if tc.want == id.AllowWithObligation {
			want.Obligations = []policy.Obligation{{Type: "human_approval", Approvals: 2, TTLSeconds: 3600}}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s by %s: got %+v\nwant %+v", tc.tool, tc.agent, got, want)
		}
	}
}

// People see only reasons that the author of a policy wrote.
func TestWrittenReason(t *testing.T) {
	rule := policy.Rule{ID: "big", Tool: "a.b", Decision: id.AllowWithObligation}
	for _, written := range []string{"", "Large refunds need a person."} {
		rule.Reason = written
		o := decide(compile(t, testPolicy(rule)), input("a.b", "agt_1"))
		if got := policy.WrittenReason(o.RuleID, o.Reason); o.RuleID != "big" || o.Reason == "" || got != written {
			t.Errorf("rule %s, reason %q: got %q, want %q", o.RuleID, o.Reason, got, written)
		}
	}
}

func TestCombination(t *testing.T) {
	allow := policy.Rule{ID: "allow", Tool: "a.**", Decision: id.Allow}
	oblige := policy.Rule{ID: "oblige", Tool: "a.*", Decision: id.AllowWithObligation}
	deny := policy.Rule{ID: "deny", Tool: "a.b", Decision: id.Deny}
	denyToo := policy.Rule{ID: "deny-too", Tool: "**", Decision: id.Deny}
	raised := func(r policy.Rule, priority int) policy.Rule { r.Priority = priority; return r }
	shadow := func(r policy.Rule) policy.Rule { r.Mode = policy.Shadow; return r }
	for name, tc := range map[string]struct {
		rules []policy.Rule
		want  string
	}{
		"none":                          {nil, "default"},
		"deny beats the others":         {[]policy.Rule{allow, oblige, deny}, "deny"},
		"an obligation beats allow":     {[]policy.Rule{allow, oblige}, "oblige"},
		"the first of equals":           {[]policy.Rule{deny, denyToo}, "deny"},
		"the first, the other way":      {[]policy.Rule{denyToo, deny}, "deny-too"},
		"priority beats strictness":     {[]policy.Rule{deny, raised(allow, 1)}, "allow"},
		"negative priority comes last":  {[]policy.Rule{raised(deny, -1), allow}, "allow"},
		"strictness inside of a level":  {[]policy.Rule{raised(allow, 1), raised(oblige, 1), deny}, "oblige"},
		"shadow does not count":         {[]policy.Rule{allow, shadow(deny)}, "allow"},
		"shadow does not count alone":   {[]policy.Rule{shadow(raised(deny, 9))}, "default"},
		"what does not match is nobody": {[]policy.Rule{allow, {ID: "x", Tool: "a.c", Decision: id.Deny, Priority: 9}}, "allow"},
		"another agent's rule":          {[]policy.Rule{allow, {ID: "x", Tool: "a.b", Agents: []id.Agent{"agt_2"}, Decision: id.Deny}}, "allow"},
		"this agent's rule":             {[]policy.Rule{allow, {ID: "x", Tool: "a.b", Agents: []id.Agent{"agt_2", "agt_1"}, Decision: id.Deny}}, "x"},
	} {
		got := decide(compile(t, testPolicy(tc.rules...)), input("a.b", "agt_1"))
		if got.RuleID != tc.want {
			t.Errorf("%s: got %s, want %s", name, got.RuleID, tc.want)
		}
	}
}

func TestNoPolicy(t *testing.T) {
	none := policy.NoPolicy()
	o := none.Settle(nil)
	if o.Decision != id.Allow || o.PolicyID != "none" || o.RuleID != "none" || o.Engine != "rules" || o.Reason == "" {
		t.Errorf("got %+v", o)
	}
}

func TestEffectiveOnlyTightens(t *testing.T) {
	for _, declared := range []id.Decision{id.Allow, id.AllowWithObligation, id.Deny} {
		for _, decided := range []id.Decision{id.Allow, id.AllowWithObligation, id.Deny} {
			got := policy.Outcome{Decision: decided}.Effective(declared)
			if want := max(declared, decided); got != want {
				t.Errorf("declared %s, decided %s: got %s, want %s", declared, decided, got, want)
			}
		}
	}
}

// Two organizations with different versions of the same policy: the answers of one compiled form never
// appear in the other's.
func TestCompiledKeepsNothing(t *testing.T) {
	p := parse(t, refunds)
	first := compile(t, p)
	in := input("acme.pay.refund", "agt_1")
	want := decide(first, in)
	p.Version, p.Rules[1].Obligations[0].Approvals, p.Rules[1].Agents[0] = 4, 7, "agt_7"
	second := compile(t, p)
	if got := decide(second, in); got.PolicyVersion != 4 || got.RuleID != "read" {
		t.Errorf("second: got %+v", got)
	}
	if got := decide(first, in); !reflect.DeepEqual(got, want) || got.Obligations[0].Approvals != 2 {
		t.Errorf("first: got %+v, want %+v", got, want)
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, change := range map[string]func(*policy.Policy){
		"policy_id":   func(p *policy.Policy) { p.ID = "" },
		"version":     func(p *policy.Policy) { p.Version = 0 },
		"default":     func(p *policy.Policy) { p.Default = 0 },
		"mode":        func(p *policy.Policy) { p.Rules[0].Mode = 0 },
		"decision":    func(p *policy.Policy) { p.Rules[0].Decision = 4 },
		"name":        func(p *policy.Policy) { p.Name = "\xff" },
		"reason":      func(p *policy.Policy) { p.Rules[0].Reason = "\xff" },
		"tool":        func(p *policy.Policy) { p.Rules[0].Tool = "" },
		"rule_id":     func(p *policy.Policy) { p.Rules[0].ID = policy.None },
		"obligations": func(p *policy.Policy) { p.Rules[0].Obligations = p.Rules[1].Obligations },
	} {
		p := parse(t, refunds)
		change(&p)
		if _, err := policy.Compile(p); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestInputDigest(t *testing.T) {
	in := input("acme.pay.refund", "agt_1")
	const members = `{"action_kind":"tool_call","actor_type":"agent","agent_id":"agt_1","payload":%s,"tool_name":"acme.pay.refund"}`
	payloads := map[string][]byte{
		`{}`:                             nil,
		`{"amount_usd":12.5,"note":"é"}`: []byte(`{"amount_usd":12.5,"note":"é"}`),
	}
	for _, length := range []int{1024, 1527, 1528, 1529, 5000} { // around the size that is built on the stack
		payload := `{"a":"` + strings.Repeat("x", length) + `"}`
		payloads[payload] = []byte(payload)
	}
	for payload, sent := range payloads {
		in.Payload = sent
		want := id.Hash(sha256.Sum256(fmt.Appendf(nil, members, payload)))
		if got := policy.InputDigest(in); got != want {
			t.Errorf("%s: got %s, want %s", payload, got, want)
		}
	}
	want := policy.InputDigest(in)
	in.Now++
	if got := policy.InputDigest(in); got != want {
		t.Error("the digest depends on the time")
	}
}

// naive decides by trying every rule in stored order, as the package comment describes the combination.
func naive(p policy.Policy, tool string, agent id.Agent) (rule string, decision id.Decision, shadow []string) {
	rule, decision = policy.DefaultRule, p.Default
	best := -policy.MaxPriority - 1
	for _, r := range p.Rules {
		if !globRegexp(r.Tool).MatchString(tool) || len(r.Agents) > 0 && !slices.Contains(r.Agents, agent) {
			continue
		}
		switch {
		case r.Mode == policy.Shadow:
			shadow = append(shadow, r.ID)
		case r.Priority > best, r.Priority == best && r.Decision > decision:
			best, rule, decision = r.Priority, r.ID, r.Decision
		}
	}
	return rule, decision, shadow
}

func TestEvaluateAgreesWithNaive(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	for range 150 {
		var rules []policy.Rule
		for range random.IntN(40) {
			glob := pick("a", "b", "c", "*")
			for range random.IntN(4) {
				glob += "." + pick("a", "b", "c", "*", "*")
			}
			r := policy.Rule{
				Tool:     glob + pick("", "", ".**"),
				Decision: id.Decision(1 + random.IntN(3)),
				Priority: random.IntN(3) - 1,
				Mode:     policy.Mode(1 + random.IntN(4)/3),
			}
			if random.IntN(2) == 0 {
				r.Agents = []id.Agent{id.Agent(pick("agt_1", "agt_2")), id.Agent(pick("agt_3", "agt_4"))}
			}
			rules = append(rules, r)
		}
		p := testPolicy(rules...)
		p.Default = id.Decision(1 + random.IntN(3))
		c := compile(t, p)
		for range 30 {
			tool := strings.TrimSuffix(strings.Repeat(pick("a.", "b.", "c.")+pick("a.", "b.", "d."), 1+random.IntN(3)), ".")
			agent := id.Agent(pick("agt_1", "agt_2", "agt_3", "agt_5"))
			rule, decision, shadow := naive(p, tool, agent)
			got := decide(c, input(tool, agent))
			if got.RuleID != rule || got.Decision != decision || !slices.Equal(got.Shadow, shadow) {
				t.Fatalf("%s by %s: got %s %s %v, want %s %s %v\n%s",
					tool, agent, got.RuleID, got.Decision, got.Shadow, rule, decision, shadow, p.Canonical())
			}
		}
	}
}

func TestEvaluateDoesNotAllocate(t *testing.T) {
	c, in := compile(t, manyRules(100)), input("vendor7.area7.operation7", "agt_1")
	if got := testing.AllocsPerRun(100, func() { decide(c, in) }); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

// manyRules returns a policy of n rules over n tools, every tenth with a wildcard.
func manyRules(n int) policy.Policy {
	var rules []policy.Rule
	for i := range n {
		glob := fmt.Sprintf("vendor%d.area%d.operation%d", i%20, i%50, i)
		switch i % 10 {
		case 8:
			glob = fmt.Sprintf("vendor%d.*.operation%d", i%20, i)
		case 9:
			glob = fmt.Sprintf("vendor%d.area%d.**", i%20, i%50)
		}
		rules = append(rules, policy.Rule{
			Tool: glob, Decision: id.Decision(1 + i%3), Priority: i % 3,
			Agents: []id.Agent{"agt_1", id.Agent(fmt.Sprintf("agt_x%d", i))},
		})
	}
	return testPolicy(rules...)
}

func BenchmarkEvaluate(b *testing.B) {
	for _, n := range []int{1, 100, 500} {
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			c := compile(b, manyRules(n))
			in := input("vendor0.area0.operation0", "agt_1")
			if got := decide(c, in).RuleID; got == policy.DefaultRule {
				b.Fatal("no rule matches")
			}
			b.ReportAllocs()
			for b.Loop() {
				decide(c, in)
			}
		})
	}
}

// Every rule matches the tool and none matches the agent: the maximum cost of 500 rules.
func BenchmarkEvaluateWorst(b *testing.B) {
	var rules []policy.Rule
	for range policy.MaxRules {
		rules = append(rules, policy.Rule{Tool: "**", Agents: []id.Agent{"agt_2", "agt_3"}})
	}
	c, in := compile(b, testPolicy(rules...)), input("acme.pay.refund", "agt_1")
	b.ReportAllocs()
	for b.Loop() {
		decide(c, in)
	}
}

func BenchmarkInputDigest(b *testing.B) {
	in := input("acme.pay.refund", "agt_1")
	in.Payload = []byte(`{"amount_usd":12.5,"currency":"USD","note":"` + strings.Repeat("x", 900) + `"}`)
	b.SetBytes(int64(len(in.Payload)))
	b.ReportAllocs()
	for b.Loop() {
		policy.InputDigest(in)
	}
}

func BenchmarkCompile(b *testing.B) {
	p := manyRules(policy.MaxRules)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := policy.Compile(p); err != nil {
			b.Fatal(err)
		}
	}
}
