package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// withRules returns a policy that allows by default, with the given rules.
func withRules(t testing.TB, rules ...string) policy.Policy {
	t.Helper()
	return parse(t, `{"policy_id":"p","version":1,"name":"n","rules":[`+strings.Join(rules, ",")+`]}`)
}

func limitRule(rule, decision, more, limit string) string {
	return fmt.Sprintf(`{"rule_id":"%s","tool":"acme.pay.*","decision":"%s"%s,"limit":{"limit_id":"%s-limit","window_seconds":86400,%s}}`, rule, decision, more, rule, limit)
}

func amount(t testing.TB, s string) decimal.Decimal {
	t.Helper()
	d, err := decimal.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// counted settles with the given counters; missing counters are 0.
func counted(t testing.TB, e *policy.Evaluation, before map[string]string) policy.Outcome {
	t.Helper()
	return e.Settle(func(c *policy.Claim) bool {
		return c.Exceeds(amount(t, max(before[c.Limit.ID], "0")))
	})
}

const usd = `"sum":"amount","by":"organization","max":1000,"currency":"USD"`

func TestLimit(t *testing.T) {
	spending := limitRule("cap", "deny", "", usd)
	for _, tc := range []struct {
		payload, before string
		want            string
	}{
		{`{"amount":100,"currency":"USD"}`, "0", "default"},
		{`{"amount":100,"currency":"USD"}`, "900", "default"},
		{`{"amount":100,"currency":"USD"}`, "900.000000000000000001", "cap"},
		{`{"amount":100.01,"currency":"USD"}`, "900", "cap"},
		{`{"amount":"100.010000000000000001","currency":"USD"}`, "899.99", "cap"},
		{`{"amount":"100.01","currency":"USD"}`, "899.99", "default"},
		{`{"amount":0,"currency":"USD"}`, "1000", "default"},
		{`{"amount":0,"currency":"USD"}`, "1001", "cap"},
		{`{"amount":"99999999999999999999","currency":"USD"}`, "99999999999999999999", "cap"},
		{`{"$tagged":true,"amount":{"$number":"100.000000000000000001"},"currency":"USD"}`, "899.999999999999999999", "default"},
		{`{"$tagged":true,"amount":{"$number":"100.000000000000000001"},"currency":"USD"}`, "900", "cap"},
		{`{"$tagged":true,"amount":{"$number":"9007199254740993"},"currency":"USD"}`, "0", "cap"},
	} {
		e := compile(t, withRules(t, spending)).Evaluate(at(tc.payload))
		if len(e.Claims) != 1 {
			t.Fatalf("%s: got claims %+v", tc.payload, e.Claims)
		}
		if got := counted(t, &e, map[string]string{"cap-limit": tc.before}); got.RuleID != tc.want {
			t.Errorf("%s after %s: got %s, want %s", tc.payload, tc.before, got.RuleID, tc.want)
		}
		if got := e.Settle(nil); got.RuleID != "cap" {
			t.Errorf("%s with unknown counters: got %s", tc.payload, got.RuleID)
		}
	}
}

// An amount that cannot be added denies, and claims nothing.
func TestLimitErrors(t *testing.T) {
	for _, tc := range []struct{ limit, payload, why string }{
		{usd, `{"$tagged":true,"amount":{"$number":"1e+400"},"currency":"USD"}`, "payload.amount is not an amount"},
		{usd, `{"$tagged":true,"amount":{"$number":"-9007199254740993"},"currency":"USD"}`, "payload.amount is negative"},
		{usd, `{"amount":{"$number":"9007199254740993"},"currency":"USD"}`, "payload.amount is not an amount"},
		{usd, `{"currency":"USD"}`, "payload.amount is missing"},
		{usd, `{"amount":null,"currency":"USD"}`, "payload.amount is null"},
		{usd, `{"amount":"much","currency":"USD"}`, "payload.amount is not an amount"},
		{usd, `{"amount":[1],"currency":"USD"}`, "payload.amount is not an amount"},
		{usd, `{"amount":1e+30,"currency":"USD"}`, "payload.amount is not an amount"},
		{usd, `{"amount":-1,"currency":"USD"}`, "payload.amount is negative"},
		{usd, `{"amount":"-0.01","currency":"USD"}`, "payload.amount is negative"},
		{usd, `{"amount":1}`, "payload.currency is missing"},
		{usd, `{"amount":1,"currency":null}`, "payload.currency is missing"},
		{usd, `{"amount":1,"currency":"EUR"}`, "the currency of payload.amount is not USD"},
		{usd, `{"amount":1,"currency":"usd"}`, "the currency of payload.amount is not USD"},
		{usd, `{"amount":1,"currency":["USD"]}`, "the currency of payload.amount is not USD"},
		{`"sum":"order.total","by":"organization","max":1000,"currency":"USD"`, `{"currency":"USD","order":{"currency":"EUR","total":1}}`, "the currency of payload.order.total is not USD"},
		{`"sum":"order.total","by":"organization","max":1000`, `{"currency":"USD","order":{"total":1}}`, "payload has a currency and the limit names none"},
	} {
		e := compile(t, withRules(t, limitRule("cap", "deny", "", tc.limit))).Evaluate(at(tc.payload))
		got := counted(t, &e, nil)
		if len(e.Claims) != 0 || got.Decision != id.Deny || got.RuleID != "cap" || !strings.Contains(got.Reason, tc.why) {
			t.Errorf("%s of %s: got %s by %s, %q, claims %v; want %q", tc.limit, tc.payload, got.Decision, got.RuleID, got.Reason, e.Claims, tc.why)
		}
	}
	for _, payload := range []string{`{"currency":"USD","order":{"total":1}}`, `{"currency":"EUR","order":{"currency":"USD","total":1}}`} {
		e := compile(t, withRules(t, limitRule("cap", "deny", "", `"sum":"order.total","by":"organization","max":1000,"currency":"USD"`))).Evaluate(at(payload))
		if len(e.Claims) != 1 {
			t.Errorf("%s: got claims %+v, want one", payload, e.Claims)
		}
	}
}

// A limit applies to the events of its rule, whatever kind they claim to be.
func TestLimitAppliesToEveryKind(t *testing.T) {
	c := compile(t, withRules(t,
		limitRule("euro", "deny", `,"when":"payload.currency == 'EUR'"`, `"sum":"amount","by":"agent","max":10,"currency":"EUR"`),
		limitRule("dollar", "deny", `,"when":"payload.currency == 'USD'"`, `"sum":"amount","by":"tool","max":10,"currency":"USD"`),
		limitRule("calls", "allow_with_obligation", `,"agents":["agt_1"],"mode":"shadow"`, `"count":true,"by":"organization","max":2.5`),
	))
	in := at(`{"amount":4.5,"currency":"EUR"}`)
	e := c.Evaluate(in)
	claims := func() (all []string) {
		for _, claim := range e.Claims {
			all = append(all, fmt.Sprintf("%s %q %s %s shadow=%v", claim.Limit.ID, claim.Key, claim.Added, claim.Limit.Max, claim.Shadow))
		}
		return all
	}
	want := []string{`euro-limit "agt_1" 4.5 10 shadow=false`, `calls-limit "" 1 2.5 shadow=true`}
	if got := claims(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	o := counted(t, &e, map[string]string{"calls-limit": "2", "dollar-limit": "100"})
	if o.Decision != id.Allow || !slices.Equal(o.Shadow, []string{"calls"}) {
		t.Errorf("got %+v", o)
	}
	if o = counted(t, &e, map[string]string{"calls-limit": "1.5"}); o.Shadow != nil {
		t.Errorf("got %+v", o)
	}

	in.Agent, in.Payload = "agt_2", []byte(`{"amount":4.5,"currency":"USD"}`)
	e = c.Evaluate(in)
	if got := claims(); !slices.Equal(got, []string{`dollar-limit "acme.pay.refund" 4.5 10 shadow=false`}) {
		t.Errorf("got %q", got)
	}
	for _, kind := range []string{"result", "made_up", "policy_decision"} {
		in.ActionKind = kind
		if e = c.Evaluate(in); !slices.Equal(claims(), []string{`dollar-limit "acme.pay.refund" 4.5 10 shadow=false`}) {
			t.Errorf("%s: got %q", kind, claims())
		}
		if e = c.EvaluateLegacy(in); len(e.Claims) != 0 || e.Settle(nil).Decision != id.Allow {
			t.Errorf("%s formerly: got %q", kind, claims())
		}
	}
	in.Payload = []byte(`{}`)
	if e = c.Evaluate(in); e.Settle(nil).Decision != id.Deny {
		t.Errorf("another kind without an amount: got %+v", e.Settle(nil))
	}
}

// Exceeded limits take part in the combination like other rules.
func TestLimitCombination(t *testing.T) {
	p := withRules(t,
		`{"rule_id":"vip","tool":"**","decision":"allow","priority":5,"when":"payload.vip == true","requires":[]}`,
		limitRule("soft", "allow_with_obligation", `,"obligations":[{"type":"human_approval","approvals":2}]`, `"sum":"amount","by":"organization","max":100`),
		limitRule("hard", "deny", "", `"sum":"amount","by":"organization","max":1000`),
		limitRule("tight", "deny", `,"priority":9,"reason":"Even they"`, `"sum":"amount","by":"organization","max":5000`),
	)
	c := compile(t, p)
	for _, tc := range []struct {
		payload, before, want string
		claims                int
	}{
		{`{"amount":10,"vip":false}`, "0", "default", 3},
		{`{"amount":10,"vip":false}`, "95", "soft", 3},
		{`{"amount":10,"vip":false}`, "995", "hard", 3},
		{`{"amount":10,"vip":true}`, "995", "vip", 3},
		{`{"amount":10,"vip":true}`, "4995", "tight", 3},
		{`{"amount":-10,"vip":true}`, "0", "tight", 0},
	} {
		e := c.Evaluate(at(tc.payload))
		o := counted(t, &e, map[string]string{"soft-limit": tc.before, "hard-limit": tc.before, "tight-limit": tc.before})
		if o.RuleID != tc.want || len(e.Claims) != tc.claims {
			t.Errorf("%s after %s: got %s and %d claims, want %s and %d", tc.payload, tc.before, o.RuleID, len(e.Claims), tc.want, tc.claims)
		}
		if tc.want == "soft" && (len(o.Obligations) != 1 || o.Obligations[0].Approvals != 2 || o.Reason != "Rule soft says allow_with_obligation: limit soft-limit is exceeded.") {
			t.Errorf("got %+v", o)
		}
		again := counted(t, &e, map[string]string{"soft-limit": tc.before, "hard-limit": tc.before, "tight-limit": tc.before})
		if fmt.Sprint(again) != fmt.Sprint(o) {
			t.Errorf("settled again: got %+v, want %+v", again, o)
		}
	}
}

// Counters differ in everything that makes sums of different things, and in nothing else.
func TestCounter(t *testing.T) {
	counter := func(agent id.Agent, more, limit string) id.Hash {
		in := at(`{"amount":1,"other":1}`)
		in.Agent = agent
		e := compile(t, withRules(t, limitRule("cap", "deny", more, limit))).Evaluate(in)
		return e.Claims[0].Counter()
	}
	base := counter("agt_1", "", `"sum":"amount","by":"agent","max":10`)
	if got := counter("agt_1", `,"priority":3,"reason":"other"`, `"sum":"payload.amount","by":"agent","max":99`); got != base {
		t.Error("another max gives another counter")
	}
	for name, got := range map[string]id.Hash{
		"agent": counter("agt_2", "", `"sum":"amount","by":"agent","max":10`),
		"by":    counter("agt_1", "", `"sum":"amount","by":"organization","max":10`),
		"path":  counter("agt_1", "", `"sum":"other","by":"agent","max":10`),
		"count": counter("agt_1", "", `"count":true,"by":"agent","max":10`),
	} {
		if got == base {
			t.Errorf("another %s is the same counter", name)
		}
	}
}

func TestLimitCanonical(t *testing.T) {
	p := withRules(t, limitRule("cap", "deny", "", `"sum":"payload.order.total","by":"agent","max":"1000.50","currency":"USD"`))
	const want = `"limit":{"by":"agent","count":false,"currency":"USD","limit_id":"cap-limit","max":"1000.5","sum":"order.total","window_seconds":86400}`
	if got := string(p.Canonical()); !strings.Contains(got, want) {
		t.Errorf("got %s, want it to hold %s", got, want)
	}
	again, err := policy.Parse(p.Canonical())
	if err != nil || again.Digest() != p.Digest() {
		t.Errorf("got %s, %v", again.Canonical(), err)
	}
	base := p.Digest()
	for name, change := range map[string]func(*policy.Limit){
		"id": func(l *policy.Limit) { l.ID = "x" }, "sum": func(l *policy.Limit) { l.Sum = "x" }, "count": func(l *policy.Limit) { l.Sum, l.Count = "", true },
		"by": func(l *policy.Limit) { l.By = policy.ByTool }, "window": func(l *policy.Limit) { l.WindowSeconds++ },
		"max": func(l *policy.Limit) { l.Max = amount(t, "1000.51") }, "currency": func(l *policy.Limit) { l.Currency = "" },
	} {
		limit := *again.Rules[0].Limit
		change(&limit)
		p.Rules[0].Limit = &limit
		if p.Digest() == base {
			t.Errorf("%s: the digest stays the same", name)
		}
	}
}

func TestTallies(t *testing.T) {
	all := []policy.Tally{{"daily", amount(t, "9007199254740993.01"), amount(t, "0.1")}, {"calls", amount(t, "0"), amount(t, "1")}}
	const want = `[{"added":"0.1","before":"9007199254740993.01","limit_id":"daily"},{"added":"1","before":"0","limit_id":"calls"}]`
	if got := string(policy.AppendTallies(nil, all)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, err := policy.ParseTallies([]byte(want)); err != nil || !slices.Equal(got, all) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, none := range []string{"", "null", "[]"} {
		if got, err := policy.ParseTallies([]byte(none)); err != nil || got != nil {
			t.Errorf("%q: got %v, %v", none, got, err)
		}
	}
	for _, bad := range []string{"{}", "[1]", `[{"limit_id":"x"}]`, `[{"added":"x","before":0,"limit_id":"x"}]`, `[{"added":1,"before":0,"limit":"x"}]`} {
		if got, err := policy.ParseTallies([]byte(bad)); err == nil {
			t.Errorf("%s: got %v", bad, got)
		}
	}
}
