package policy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// manyTimes returns a policy document of n rules with conditions.
func manyTimes(n int, decision string, when func(i int) string) []byte {
	var rules []string
	for i := range n {
		text, _ := json.Marshal(when(i))
		rules = append(rules, fmt.Sprintf(`{"rule_id":"r%d","tool":"**","decision":"%s","when":%s}`, i, decision, text))
	}
	return fmt.Appendf(nil, `{"policy_id":"p","version":1,"name":"n","default":"%s","rules":[%s]}`, opposite(decision), strings.Join(rules, ","))
}

// stored returns a policy that was saved before the bounds for saving existed.
func stored(tb testing.TB, document []byte) *policy.Compiled {
	tb.Helper()
	p, err := policy.ParseStored(document)
	if err != nil {
		tb.Fatal(err)
	}
	return compile(tb, p)
}

// Many expensive conditions together cost a bounded number of units. Those beyond the bound count as
// rule errors.
func TestTotalCost(t *testing.T) {
	same := func(int) string { return `payload.text.matches("(a+)+(b+)+$")` }
	all, few := compile(t, parse(t, string(manyTimes(500, "deny", same)))), compile(t, parse(t, string(manyTimes(100, "deny", same))))
	text := func(n int) policy.Input { return at(`{"text":"` + strings.Repeat("c", n) + `"}`) }
	for _, tc := range []struct {
		name string
		c    *policy.Compiled
		n    int
		want id.Decision
		cost uint64
	}{
		{"500 rules, 5000 bytes", all, 5000, id.Deny, policy.MaxTotalCost},
		{"100 rules, 5000 bytes", few, 5000, id.Allow, 407_426},
		{"500 rules, 500 bytes", all, 500, id.Allow, 206_063},
	} {
		o := decide(tc.c, text(tc.n))
		if o.Decision != tc.want || strings.Contains(o.Reason, "costs too much") != (tc.want == id.Deny) {
			t.Errorf("%s: got %+v, want %s", tc.name, o, tc.want)
		}
		if got := policy.Cost(tc.c, text(tc.n)); got != tc.cost {
			t.Errorf("%s: costs %d units, want %d", tc.name, got, tc.cost)
		}
	}
}

// A single condition has its own bound, and so does the length of a matched text.
func TestRuntimeCost(t *testing.T) {
	c := compile(t, withWhen(t, "deny", `payload.text.matches("(a+)+(b+)+(c+)+(d+)+(e+)+(f+)+$")`, ""))
	for _, tc := range []struct {
		n    int
		want string
	}{{1000, ""}, {40_000, ""}, {50_000, "costs too much"}, {65_536, "costs too much"}, {65_537, "more than 65536 bytes"}} {
		o := decide(c, at(`{"text":"`+strings.Repeat("a", tc.n)+`"}`))
		if failed := o.Decision == id.Deny; failed != (tc.want != "") || !strings.Contains(o.Reason, tc.want) {
			t.Errorf("%d bytes: got %+v, want %q", tc.n, o, tc.want)
		}
	}
}

// attacks returns policies whose evaluation used to take seconds, each with its payload.
func attacks() map[string]struct {
	document []byte
	payload  string
} {
	digits := `{"s":"0.` + strings.Repeat("1", 240_000) + `"}`
	conversions := func(function string) []byte {
		return manyTimes(100, "deny", func(i int) string {
			return fmt.Sprintf("%[1]s(payload.s) == %[1]s(payload.s) && 1 == %[2]d", function, i)
		})
	}
	return map[string]struct {
		document []byte
		payload  string
	}{
		"patterns":         {manyTimes(9, "deny", func(int) string { return `payload.s.matches('a{0,490}z0')` }), `{"s":"` + strings.Repeat("a", 240_000) + `"}`},
		"a shorter text":   {manyTimes(9, "deny", func(int) string { return `payload.s.matches('a{0,490}z0')` }), `{"s":"` + strings.Repeat("a", 60_000) + `"}`},
		"shorter patterns": {manyTimes(100, "deny", func(i int) string { return fmt.Sprintf(`payload.s.matches('a{0,9}z%d')`, i) }), `{"s":"` + strings.Repeat("a", 16_000) + `"}`},
		"double":           {conversions("double"), digits},
		"int":              {conversions("int"), digits},
		"timestamp":        {conversions("timestamp"), digits},
		"duration":         {conversions("duration"), digits},
		"decimal":          {conversions("decimal"), digits},
		"an amount":        {[]byte(`{"policy_id":"p","version":1,"name":"n","rules":[{"rule_id":"r","tool":"**","decision":"deny","limit":{"limit_id":"l","sum":"s","by":"agent","window_seconds":60,"max":1}}]}`), digits},
		"a computed name": {manyTimes(100, "deny", func(i int) string { return fmt.Sprintf(`{payload.s: %d}[payload.s] == 1000`, i) }),
			`{"s":"` + strings.Repeat("a", 240_000) + `"}`},
		"joined lists": {manyTimes(20, "deny", func(i int) string { return fmt.Sprintf(`%d.5 in payload.s%s`, i, strings.Repeat(" + payload.s", 40)) }),
			`{"s":[` + strings.Repeat("1,", 20_000) + `1]}`},
	}
}

// The cost of such a policy is bounded, and it denies if it cannot decide, even if it was saved before
// the bounds existed.
func TestAttacks(t *testing.T) {
	for name, attack := range attacks() {
		c, in := stored(t, attack.document), at(attack.payload)
		if got := policy.Cost(c, in); got > policy.MaxTotalCost {
			t.Errorf("%s: costs %d units", name, got)
		}
		if o := decide(c, in); o.Decision != id.Deny || !strings.Contains(o.Reason, "could not be evaluated") {
			t.Errorf("%s: got %s, %q", name, o.Decision, o.Reason)
		}
	}
}

// The error for a rejected policy names the rule.
func TestSavingRefuses(t *testing.T) {
	long := func(i int) string { return fmt.Sprintf(`%d in [%s1]`, i, strings.Repeat("1,", 1000)) }
	for name, tc := range map[string]struct {
		document []byte
		want     string
	}{
		"a pattern":         {manyTimes(1, "deny", func(int) string { return `payload.s.matches('a{0,490}z0')` }), "rules[0].when costs too much"},
		"patterns together": {manyTimes(500, "deny", func(i int) string { return fmt.Sprintf(`tool_name.matches('a{0,90}z%d')`, i) }), "rules[54].when has a pattern of 185 instructions, with which the different patterns of the policy have more than 10000"},
		"classes":           {manyTimes(500, "deny", func(i int) string { return fmt.Sprintf(`tool_name.matches('[%s]%d')`, strings.Repeat(`\\pL`, 100), i) }), "rules[1].when has a pattern of 8000 instructions"},
		"wide ranges": {manyTimes(500, "deny", func(i int) string {
			return fmt.Sprintf(`tool_name.matches('(?i)[%s]%d')`, strings.Repeat(`A-\\x{1e943}`, 100), i)
		}), "rules[1].when has a pattern of 8000 instructions"},
		"conditions": {manyTimes(30, "deny", long), "rules[9].when has 2067 parts, with which the different conditions of the policy have more than 20000"},
	} {
		_, err := policy.Parse(tc.document)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Of(err).Message, tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		p, err := policy.ParseStored(tc.document)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := policy.CompileBounded(t.Context(), p); !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Of(err).Message, tc.want) {
			t.Errorf("%s: activated: got %v, want %q", name, err, tc.want)
		}
	}
	same := func(int) string { return long(0) }
	if _, err := policy.Parse(manyTimes(400, "deny", same)); err != nil {
		t.Errorf("400 equal conditions: %v", err)
	}
}

func TestPartsOf(t *testing.T) {
	for source, want := range map[string]int{
		``: 0, `true`: 1, `payload.a > 5.0`: 5, `payload.amount_usd > 1000.0 && payload.currency == "USD"`: 11 + 1,
		`a&&b||!c`: 6, `x in ["a", 'b', """c"d""", r"\", b'e', 'f\'']`: 15 + 1, "a // b c d\n+ e": 3, "`a b`.c": 3,
		`"not closed`: 1, `"`: 1, `'`: 1, `"""`: 1, `r"`: 1, "`": 1, `"\`: 1, "'a\nb": 2, `1.5.6`: 1, `a.0x1F`: 3,
	} {
		if got := policy.PartsOf(source); got != want {
			t.Errorf("%s: got %d, want %d", source, got, want)
		}
	}
}

// impatient is a context that ends after a number of checks.
type impatient struct {
	context.Context
	asks, most int
}

var errEnded = errors.New("ended")

func (c *impatient) Err() error {
	if c.asks++; c.asks > c.most {
		return errEnded
	}
	return nil
}

// An evaluation stops when its context ends and then returns no answer. It checks the context in short
// intervals, and a cheap evaluation does not check it at all.
func TestEvaluationEnds(t *testing.T) {
	dear := compile(t, parse(t, string(manyTimes(500, "deny", func(int) string { return `payload.s.matches("(a+)+(b+)+$")` }))))
	cheap := compile(t, withWhen(t, "deny", `payload.n > 1`, ""))
	long := at(`{"n":1,"s":"` + strings.Repeat("a", 5000) + `"}`)
	for _, tc := range []struct {
		name string
		c    *policy.Compiled
		most int
		want error
		asks int
	}{
		{"at once", dear, 0, errEnded, 1},
		{"later", dear, 7, errEnded, 8},
		{"never", dear, 1000, nil, 40},
		{"cheap", cheap, 0, nil, 0},
	} {
		ctx := &impatient{Context: t.Context(), most: tc.most}
		e, err := tc.c.EvaluateWithin(ctx, long)
		if !errors.Is(err, tc.want) || (err != nil) != (tc.want != nil) || ctx.asks != tc.asks {
			t.Errorf("%s: got %v after %d asks, want %v after %d", tc.name, err, ctx.asks, tc.want, tc.asks)
		}
		if err != nil && e.Settle(nil).RuleID != "" {
			t.Errorf("%s: ended, and still says %+v", tc.name, e.Settle(nil))
		}
	}
	ctx := &impatient{Context: t.Context()}
	document := manyTimes(3, "deny", func(i int) string { return fmt.Sprintf("payload.n == %d", i) })
	if _, err := policy.ParseWithin(ctx, document); !errors.Is(err, errEnded) {
		t.Errorf("parse: got %v", err)
	}
	p := parse(t, string(document))
	if _, err := policy.CompileWithin(ctx, p); !errors.Is(err, errEnded) {
		t.Errorf("compile: got %v", err)
	}
	if _, err := policy.Explain(ctx, p, long); !errors.Is(err, errEnded) {
		t.Errorf("explain: got %v", err)
	}
	if _, err := dear.RunTests(ctx, make([]policy.Test, 1)); !errors.Is(err, errEnded) {
		t.Errorf("tests: got %v", err)
	}
}

// The tests of a policy together cost a bounded number of units.
func TestCostOfTests(t *testing.T) {
	c := compile(t, parse(t, string(manyTimes(500, "deny", func(int) string { return `payload.s.matches("(a+)+(b+)+$")` }))))
	tests := make([]policy.Test, 12)
	for i := range tests {
		tests[i].Input = at(`{"s":"` + strings.Repeat("a", 5000) + `"}`)
		tests[i].Expect.Decision = id.Deny
	}
	failures, err := c.RunTests(t.Context(), tests)
	if err != nil || len(failures) != 2 || failures[0].Place != 10 || !strings.Contains(failures[0].Why, "cost all that tests may cost") {
		t.Errorf("got %v, %v", failures, err)
	}
}
