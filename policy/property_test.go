package policy_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/policy"
)

// generator creates random policies and inputs that often match each other.
type generator struct{ *rand.Rand }

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) rule(t testing.TB, i int) policy.Rule {
	t.Helper()
	decision := g.pick("allow", "deny", "allow_with_obligation")
	when := g.pick("", "", `payload.n > 1`, `payload.n > 1 && payload.s == "x"`, `has(payload.s)`, `agent_id == "agt_1"`,
		`payload.o.k < 5 || payload.n == 0`, `decimal(payload.n) >= decimal("1.5")`, `now.getHours() < 12`, `"x" in payload.l`)
	p := withWhen(t, decision, max(when, "true"), "")
	r := p.Rules[0]
	r.ID, r.Tool = fmt.Sprintf("r%d", i), g.pick("a", "b", "*")+g.pick("", ".a", ".b", ".*", ".**", ".a.b")+g.pick("", "", ".c")
	if _, err := policy.Compile(testPolicy(policy.Rule{Tool: r.Tool})); err != nil {
		r.Tool = "**"
	}
	if when == "" {
		r.When = ""
	}
	r.Priority, r.Mode = g.IntN(3)-1, policy.Mode(1+g.IntN(5)/4)
	if g.IntN(3) == 0 {
		r.Agents = []id.Agent{"agt_2", "agt_3"}
	}
	if decision != "allow" && g.IntN(4) == 0 {
		r.Limit = &policy.Limit{ID: r.ID + "-limit", Sum: "n", By: policy.ByAgent, WindowSeconds: 60, Max: decimal.FromInt(int64(g.IntN(4)))}
		if g.IntN(2) == 0 {
			r.Limit.Sum, r.Limit.Count = "", true
		}
	}
	return r
}

func (g generator) policy(t testing.TB) policy.Policy {
	p := policy.Policy{ID: "p", Name: "n", Version: 1, Default: id.Decision(1 + g.IntN(3))}
	for i := range g.IntN(25) {
		p.Rules = append(p.Rules, g.rule(t, i))
	}
	return p
}

func (g generator) input() policy.Input {
	in := input(g.pick("a", "b", "c")+g.pick("", ".a", ".b")+g.pick("", ".b", ".c"), id.Agent(g.pick("agt_1", "agt_2", "agt_3")))
	in.Payload = []byte(g.pick(`{}`, `{"n":0}`, `{"n":2,"s":"x"}`, `{"n":-1,"o":{"k":1}}`, `{"l":["x"],"n":"7","o":{"k":9}}`, `{"l":"x","n":1.5,"o":{},"s":1}`, `{"n":null}`))
	in.Now = id.Instant(g.IntN(1 << 40))
	in.ActionKind = g.pick("tool_call", "tool_call", "result")
	return in
}

// made settles with counters that the test makes up.
func made(c *policy.Claim) bool { return c.Exceeds(decimal.FromInt(int64(len(c.RuleID)%3) - 1)) }

// outcome evaluates and settles with made-up counters.
func outcome(c *policy.Compiled, in policy.Input) policy.Outcome {
	e := c.Evaluate(in)
	return e.Settle(made)
}

// scan combines, as the package comment describes, the outcomes of policies with each rule alone.
func scan(t testing.TB, p policy.Policy, in policy.Input) (rule string, decision id.Decision, shadow []string) {
	t.Helper()
	rule, decision = policy.DefaultRule, p.Default
	best := -policy.MaxPriority - 1
	for _, r := range p.Rules {
		alone := r
		alone.Mode = policy.Enforce
		only := policy.Policy{ID: p.ID, Name: p.Name, Version: 1, Default: p.Default, Rules: []policy.Rule{alone}}
		switch matches := outcome(compile(t, only), in).RuleID == r.ID; {
		case !matches:
		case r.Mode == policy.Shadow:
			shadow = append(shadow, r.ID)
		case r.Priority > best, r.Priority == best && r.Decision > decision:
			best, rule, decision = r.Priority, r.ID, r.Decision
		}
	}
	return rule, decision, shadow
}

func TestProperties(t *testing.T) {
	g := generator{rand.New(rand.NewPCG(3, 4))}
	decided := map[string]int{}
	for range 60 {
		p := g.policy(t)
		c := compile(t, p)
		enforcing := p
		enforcing.Rules = slices.DeleteFunc(slices.Clone(p.Rules), func(r policy.Rule) bool { return r.Mode == policy.Shadow })
		shuffled := p
		shuffled.Rules = slices.Clone(p.Rules)
		g.Shuffle(len(shuffled.Rules), func(i, j int) {
			shuffled.Rules[i], shuffled.Rules[j] = shuffled.Rules[j], shuffled.Rules[i]
		})
		withoutShadow, inOtherOrder := compile(t, enforcing), compile(t, shuffled)
		for range 8 {
			in := g.input()
			got := outcome(c, in)
			rule, decision, shadow := scan(t, p, in)
			if got.RuleID != rule || got.Decision != decision || !slices.Equal(got.Shadow, shadow) {
				t.Fatalf("index and scan differ: got %s %s %v, want %s %s %v\n%+v\n%s", got.RuleID, got.Decision, got.Shadow, rule, decision, shadow, in, p.Canonical())
			}
			decided[got.Decision.String()]++
			if again := outcome(compile(t, p), in); !reflect.DeepEqual(again, got) {
				t.Fatalf("not pure: got %+v and %+v", got, again)
			}
			if bare := outcome(withoutShadow, in); bare.Decision != got.Decision || bare.RuleID != got.RuleID || bare.Reason != got.Reason {
				t.Fatalf("shadow rules change the answer: got %+v, want %+v", got, bare)
			}
			if other := outcome(inOtherOrder, in); other.Decision != got.Decision {
				t.Fatalf("the order of rules changes the decision: %+v and %+v", got, other)
			}
			for declared := id.Allow; declared <= id.Deny; declared++ {
				if got.Effective(declared) < declared || got.Effective(declared) < got.Decision {
					t.Fatalf("%s is loosened", declared)
				}
			}
			explained(t, p, in, got)
		}
	}
	if len(decided) != 3 {
		t.Errorf("the test decides too little: %v", decided)
	}
}

// explained checks that an explanation agrees with the evaluation.
func explained(t testing.TB, p policy.Policy, in policy.Input, want policy.Outcome) {
	t.Helper()
	x, err := policy.Explain(t.Context(), p, in)
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Settle(made); !reflect.DeepEqual(got, want) {
		t.Fatalf("explained: got %+v, want %+v", got, want)
	}
	for i, r := range x.Rules {
		only := policy.Policy{ID: p.ID, Name: p.Name, Version: 1, Default: p.Default, Rules: slices.Clone(p.Rules[i : i+1]), Subjects: p.Subjects}
		only.Rules[0].Mode = policy.Enforce
		e := compile(t, only).Evaluate(in)
		matches := e.Settle(func(*policy.Claim) bool { return false }).RuleID == r.RuleID
		if got := r.Result == policy.ResultMatch || r.Result == policy.ResultError; got != matches || (r.Result == policy.ResultLimit) != (len(e.Claims) == 1) {
			t.Fatalf("rule %s is told as %s, and matches: %v, claims: %d\n%s", r.RuleID, r.Result, matches, len(e.Claims), only.Canonical())
		}
	}
}

// Comparisons of numbers in a payload, tagged or plain, are those of their decimal values.
func TestComparisonsAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	literal := func() string {
		switch random.IntN(6) {
		case 0:
			return fmt.Sprint(uint64(1)<<53 + random.Uint64N(9) - 4)
		case 1:
			return fmt.Sprintf("-%d", uint64(1)<<53+random.Uint64N(9)-4)
		case 2:
			return fmt.Sprintf("%d.%019d", random.IntN(3), random.IntN(5))
		case 3:
			return fmt.Sprintf("%de%d", 1+random.IntN(3), random.IntN(10)-5+[]int{-330, 0, 308, 400}[random.IntN(4)])
		case 4:
			return fmt.Sprint(random.Uint64() >> random.IntN(12))
		}
		return fmt.Sprint(random.IntN(4))
	}
	compiled := map[string]*policy.Compiled{}
	for _, operator := range []string{"<", "<=", "==", "!=", ">=", ">"} {
		compiled[operator] = compile(t, withWhen(t, "deny", "payload.a "+operator+" payload.b", ""))
	}
	for range 5_000 {
		a, b := literal(), literal()
		exact, err := jcs.Exact([]byte(`{"a":`+a+`,"b":`+b+`}`), jcs.MaxDepth)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]jsontext.Value
		if err := json.Unmarshal(exact, &members); err != nil {
			t.Fatal(err)
		}
		jcs.TagMembers(members)
		payload, err := jcs.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		left, _ := new(big.Rat).SetString(a)
		right, _ := new(big.Rat).SetString(b)
		order := left.Cmp(right)
		for operator, want := range map[string]bool{"<": order < 0, "<=": order <= 0, "==": order == 0, "!=": order != 0, ">=": order >= 0, ">": order > 0} {
			o := decide(compiled[operator], at(string(payload)))
			if o.RuleError != "" || (o.RuleID == "r") != want {
				t.Fatalf("%s %s %s: got %+v, want %v", a, operator, b, o, want)
			}
		}
	}
}
