package policy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
)

// withWhen returns a policy that allows everything except for one rule with a condition.
func withWhen(t testing.TB, decision, when, more string) policy.Policy {
	t.Helper()
	text, err := json.Marshal(when)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, fmt.Sprintf(`{"policy_id":"p","version":1,"name":"n","default":"%s","rules":[{"rule_id":"r","tool":"**","decision":"%s","when":%s%s}]}`,
		opposite(decision), decision, text, more))
}

func opposite(decision string) string {
	if decision == "allow" {
		return "deny"
	}
	return "allow"
}

// at returns an input with a payload, on a Monday morning.
func at(payload string) policy.Input {
	in := input("acme.pay.refund", "agt_1")
	in.Payload = []byte(payload)
	in.Now = id.InstantOf(time.Date(2026, 5, 18, 9, 30, 0, 0, time.UTC))
	return in
}

func TestConditions(t *testing.T) {
	const payload = `{"amount":12.5,"big":1e+30,"flag":true,"items":[{"net sum":3},{"net sum":4}],"none":null,"note":"h\u0001é\"","order":{"id":"o-1","total":99.99},"price":"10.10","tags":["pii","eu"]}`
	for when, want := range map[string]bool{
		`payload.amount > 12`:                    true,
		`payload.amount > 12.5`:                  false,
		`payload.amount == 12.5 && payload.flag`: true,
		`payload.flag`:                           true,
		`payload.order.total < 100.0 && payload.order.id.startsWith('o-')`:      true,
		`payload["order"]["total"] < 100.0`:                                     true,
		`payload.items[1]["net sum"] == 4`:                                      true,
		`payload.items.size() == 2 && size(payload.note) == 4`:                  true,
		`payload.note == "h\u0001é\""`:                                          true,
		`"pii" in payload.tags`:                                                 true,
		`"phi" in payload.tags`:                                                 false,
		`"amount" in payload && !("missing" in payload)`:                        true,
		`has(payload.missing)`:                                                  false,
		`has(payload.order.total) && !has(payload.order.tip)`:                   true,
		`has(payload.none)`:                                                     true,
		`payload.order == payload["order"]`:                                     true,
		`payload.tags == ["pii", "eu"]`:                                         true,
		`payload.order == {"id": "o-1", "total": 99.99}`:                        true,
		`payload.big > 1e29`:                                                    true,
		`tool_name == "acme.pay.refund" && agent_id.matches("^agt_[0-9]+$")`:    true,
		`actor_type == "agent" && action_kind in ["tool_call", "other"]`:        true,
		`now.getHours() == 9 && now.getHours("+02:00") == 11`:                   true,
		`now.getDayOfWeek() in [1, 2, 3, 4, 5] && now.getHours("UTC") < 17`:     true,
		`now - timestamp("2026-05-18T09:00:00Z") == duration("30m")`:            true,
		`payload.amount > 100 ? payload.flag : payload.order.total > 1.0`:       true,
		`decimal(payload.price) + decimal("0.20") == decimal(10.3)`:             true,
		`decimal(0.1) + decimal(0.2) == decimal(0.3)`:                           true,
		`0.1 + 0.2 == 0.3`:                                                      false,
		`decimal(payload.amount) - decimal("12.49") <= decimal("0.01")`:         true,
		`decimal(payload.price) < decimal("10.1")`:                              false,
		`decimal(payload.price) >= decimal(10)`:                                 true,
		`int(payload.amount) % 5 == 2`:                                          true,
		`type(payload.price) == string && type(payload.amount) == double`:       true,
		`payload.amount > 100 || payload.amount < 0 || payload.order.total > 5`: true,
	} {
		for _, decision := range []string{"deny", "allow"} {
			c := compile(t, withWhen(t, decision, when, ""))
			o := decide(c, at(payload))
			if got := o.RuleID == "r"; got != want || strings.Contains(o.Reason, "could not") {
				t.Errorf("%s under %s: got %v, want %v (%s)", when, decision, got, want, o.Reason)
			}
		}
	}
}

// A condition that cannot be evaluated denies in a deny rule, does not allow in an allow rule,
// and the reason explains why. Nothing hides it.
func TestRuleErrors(t *testing.T) {
	for _, tc := range []struct{ when, payload, why string }{
		{`payload.amount > 100`, `{}`, "payload.amount is missing"},
		{`payload.amount > 100`, `{"amount":null}`, "payload.amount is null"},
		{`payload.amount > 100`, `{"amount":"500"}`, "no such overload"},
		{`payload.amount > 100`, `{"amount":[500]}`, "no such overload"},
		{`payload.amount > 100`, `{"amount":{"value":500}}`, "no such overload"},
		{`payload.amount > 100`, `{"amount":true}`, "no such overload"},
		{`payload.amount > 100`, `{"Amount":500}`, "payload.amount is missing"},
		{`payload.order.total > 100.0`, `{"order":{}}`, "payload.order.total is missing"},
		{`payload.order.total > 100.0`, `{"order":7}`, "payload.order.total is missing"},
		{`payload.items[2] > 100.0`, `{"items":[1,2]}`, "payload.items[2] is missing"},
		{`payload["net sum"] > 100.0`, `{}`, `payload."net sum" is missing`},

		{`payload.region == "eu" && payload.amount > 100`, `{"region":"us"}`, "payload.amount is missing"},
		{`payload.region == "eu" && payload.amount > 100`, `{"amount":null,"region":"us"}`, "payload.amount is null"},
		{`payload.region == "eu" && payload.amount > 100`, `{"amount":"500","region":"us"}`, "no such overload"},
		{`payload.amount > 100 && payload.region == "eu"`, `{"amount":"500","region":"us"}`, "no such overload"},
		{`payload.region == "us" || payload.amount > 100`, `{"amount":"500","region":"us"}`, "no such overload"},
		{`payload.a == 1.0 && payload.b == 1.0 && payload.c == 1.0 && payload.d > 1`, `{"a":0,"b":1,"c":1,"d":"x"}`, "no such overload"},
		{`payload.vip ? false : payload.amount > 100`, `{"amount":"500","vip":true}`, "no such overload"},
		{`!(payload.region == "eu") && payload.amount > 100`, `{"amount":"500","region":"eu"}`, "no such overload"},
		{`[payload.amount > 100, true] == [true, true]`, `{"amount":"500"}`, "no such overload"},

		{`payload.currency == "USD"`, `{"currency":["USD"]}`, "list is compared with string"},
		{`payload.amount == 100`, `{"amount":"100"}`, "string is compared with int"},
		{`payload.amount != 100`, `{"amount":"100"}`, "string is compared with int"},
		{`payload.tier in ["gold"]`, `{"tier":1}`, "double is compared with string"},
		{`"pii" in payload.tags`, `{"tags":[["pii"]]}`, "string is compared with list"},
		{`"pii" in payload.tags`, `{"tags":"pii"}`, "in needs a list"},
		{`payload.flag`, `{"flag":"yes"}`, "not bool"},
		{`payload.flag && tool_name == "x"`, `{"flag":"yes"}`, "no such overload"},

		{`decimal(payload.amount) > decimal(100)`, `{"amount":"1e3"}`, "not a number"},
		{`decimal(payload.amount) > decimal(100)`, `{"amount":true}`, "not a number"},
		{`decimal(payload.amount) > decimal(100)`, `{"amount":1e+300}`, "out of range"},
		{`decimal(payload.amount) + decimal("1") > decimal(100)`, `{"amount":"99999999999999999999"}`, "out of range"},
		{`decimal(payload.amount) > payload.max`, `{"amount":1,"max":0}`, "no such overload"},
		{`timestamp(payload.at) < now`, `{"at":"yesterday"}`, ""},
		{`payload.a / payload.b > 1.0 && payload.a % payload.b == 0.0`, `{"a":1,"b":0}`, "no such overload"},
		{`int(payload.amount) / 0 > 1`, `{"amount":1}`, "zero"},
	} {
		for _, decision := range []string{"deny", "allow_with_obligation", "allow"} {
			c := compile(t, withWhen(t, decision, tc.when, ""))
			o := decide(c, at(tc.payload))
			if decision == "allow" {
				if o.Decision != id.Deny || o.RuleID != "default" {
					t.Errorf("%s of %s: an allow is given: %+v", tc.when, tc.payload, o)
				}
				continue
			}
			if o.Decision.String() != decision || o.RuleID != "r" || !strings.Contains(o.Reason, "could not be evaluated") || !strings.Contains(o.Reason, tc.why) {
				t.Errorf("%s of %s: got %s by %s, %q; want %q", tc.when, tc.payload, o.Decision, o.RuleID, o.Reason, tc.why)
			}
		}
	}
}

func TestDerivedRequires(t *testing.T) {
	for when, want := range map[string][]string{
		`true`: nil,
		`tool_name == "a" && now > timestamp("2026-01-01T00:00:00Z")`: nil,
		`payload.b > 1 && payload.a.c == "x" && payload.b < 5`:        {"b", "a.c"},
		`has(payload.a)`:                                                      nil,
		`has(payload.a) && payload.a > 1`:                                     {"a"},
		`has(payload.a.b) && payload.c["net sum"][3].x == 1`:                  {`c."net sum"[3].x`},
		`payload.payload == 1`:                                                {`"payload"`},
		`size(payload) == 1 && "x" in payload`:                                nil,
		`payload.a == payload.a.b`:                                            {"a", "a.b"},
		`{"k": payload.a}["k"] == [payload.b][0] ? payload.c : payload.d > 1`: {"a", "b", "c", "d"},
	} {
		p := withWhen(t, "deny", when, "")
		if got := p.Rules[0].Requires; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
}

// Given requirements replace the derived ones, so that a condition may check has() first.
func TestGivenRequires(t *testing.T) {
	for _, tc := range []struct {
		when, requires, payload string
		want                    bool
		why                     string
	}{
		{`has(payload.tip) && payload.tip > 5`, `[]`, `{}`, false, ""},
		{`has(payload.tip) && payload.tip > 5`, `[]`, `{"tip":6}`, true, ""},
		{`has(payload.tip) && payload.tip > 5`, `[]`, `{"tip":"6"}`, true, "no such overload"},
		{`has(payload.tip) && payload.tip > 5`, `[]`, `{"tip":null}`, true, "no such overload"},
		{`!has(payload.tip) || payload.tip > 5`, `[]`, `{}`, true, ""},
		{`has(payload.tip) ? payload.tip > 5 : false`, `[]`, `{}`, false, ""},
		{`payload.tip > 5`, `[]`, `{}`, true, "no such key"},
		{`payload.tip > 5 && has(payload.tip)`, `[]`, `{}`, true, "no such key"},

		// A required path is read on every branch, any other only on its own.
		{`has(payload.tip) && payload.tip > 5 && payload.amount > 100`, `["amount"]`, `{"amount":"x"}`, true, "no such overload"},
		{`payload.amount > 100 && has(payload.tip) && payload.tip > 5`, `["payload.amount"]`, `{"amount":"x"}`, true, "no such overload"},
		{`payload.amount > 100 && has(payload.tip) && payload.tip > 5`, `["amount"]`, `{"tip":6}`, true, "payload.amount is missing"},
		{`payload.amount > 100 && has(payload.tip) && payload.tip > 5`, `["amount"]`, `{"amount":101}`, false, ""},
		{`tool_name == "x"`, `["ticket"]`, `{}`, true, "payload.ticket is missing"},
		{`payload[payload.key] == 1`, `["key"]`, `{"a":1,"key":"a"}`, true, ""},
		{`payload[payload.key] == 1`, `["key"]`, `{"a":1,"key":"b"}`, true, "no such key"},
	} {
		c := compile(t, withWhen(t, "deny", tc.when, `,"requires":`+tc.requires))
		o := decide(c, at(tc.payload))
		if got := o.Decision == id.Deny; got != tc.want || strings.Contains(o.Reason, "could not") != (tc.why != "") || !strings.Contains(o.Reason, tc.why) {
			t.Errorf("%s, %s of %s: got %v, %q; want %v, %q", tc.when, tc.requires, tc.payload, got, o.Reason, tc.want, tc.why)
		}
	}
}

// Reasons are shown to people who may not read payloads, so the reason of a condition that fails on a
// value does not quote it.
func TestReasonsHaveNoValues(t *testing.T) {
	for when, want := range map[string]string{
		`payload[payload.a] == 1.0`:                       "no such key.",
		`payload.o[payload.a] == 1.0`:                     "no such key.",
		`int(payload.a) == 1`:                             "'.",
		`uint(payload.a) == 1u`:                           "'.",
		`double(payload.a) == 1.0`:                        "'.",
		`bool(payload.a)`:                                 "'.",
		`timestamp(payload.a) > now`:                      "invalid RFC 3339 timestamp.",
		`now + duration(payload.a) > now`:                 "'.",
		`payload.l[int(payload.n)] == 1.0`:                "index out of range.",
		`decimal(payload.a) > decimal(1.0)`:               "decimal: not a number.",
		`payload.a > 1.0`:                                 "",
		`payload.a in payload.a`:                          "",
		`now + duration(payload.a + "x") > now`:           "'.",
		`"x".contains(payload.l) || payload.a == 77123.0`: "",
	} {
		c := compile(t, withWhen(t, "deny", when, `,"requires":["a"]`))
		o := decide(c, at(`{"a":"secret-77123","n":77123,"l":[1],"o":{}}`))
		if !strings.Contains(o.Reason, "could not be evaluated") || strings.Contains(o.Reason, "77123") || !strings.HasSuffix(o.Reason, want) {
			t.Errorf("%s: got %q, want %q", when, o.Reason, want)
		}
	}
}

// Numbers of a tagged payload are compared exactly, with every kind of number and from both sides.
func TestExactNumbersInConditions(t *testing.T) {
	tagged := func(n string) string { return `{"$number":"` + n + `"}` }
	payload := `{"$tagged":true,"amount":` + tagged("100.00000000000000000001") + `,"deep":[{"id":` + tagged("9007199254740993") + `}],` +
		`"huge":` + tagged("1e+400") + `,"id":` + tagged("9007199254740993") + `,"minus":` + tagged("-9007199254740993") +
		`,"object":{"$object":{"$number":"9007199254740993"}},"plain":12.5,"tiny":` + tagged("1e-400") + `,"wei":` + tagged("115792089237316195423570985008687907853269984665640564039457584007913129639935") + `}`
	for when, want := range map[string]any{
		`payload.amount > 100`:                                               true,
		`payload.amount > 100.0`:                                             true,
		`payload.amount <= 100`:                                              false,
		`100 < payload.amount && 100.0 < payload.amount`:                     true,
		`100u >= payload.amount`:                                             false,
		`payload.amount == 100 || payload.amount == 100.0`:                   false,
		`payload.amount != 100`:                                              true,
		`double(payload.amount) > 100.0`:                                     true,
		`payload.id == 9007199254740993`:                                     true,
		`9007199254740993 == payload.id`:                                     true,
		`payload.id == 9007199254740992`:                                     false,
		`payload.id == 9007199254740993u`:                                    true,
		`payload.id > 9007199254740992.0`:                                    true,
		`payload.id >= 9007199254740994`:                                     false,
		`payload.id in [1, 9007199254740993]`:                                true,
		`payload.id in [1, 9007199254740992]`:                                false,
		`payload.id == payload.deep[0].id`:                                   true,
		`payload.deep == [{"id": 9007199254740993}]`:                         true,
		`payload.deep == [{"id": 9007199254740992}]`:                         false,
		`payload.minus < payload.id && payload.minus < 0`:                    true,
		`int(payload.id) == 9007199254740993`:                                true,
		`int(payload.amount) == 100 && int(payload.tiny) == 0`:               true,
		`uint(payload.id) == 9007199254740993u`:                              true,
		`string(payload.id) == "9007199254740993"`:                           true,
		`string(payload.huge) == "1e+400"`:                                   true,
		`type(payload.id) == double`:                                         true,
		`decimal(payload.id) == decimal("9007199254740993")`:                 true,
		`decimal(payload.id) + decimal(1) > decimal("9007199254740993")`:     true,
		`payload.huge > 1e308 && payload.wei > 1e77 && payload.wei < 1.2e77`: true,
		`payload.tiny > 0 && payload.tiny < 5e-324`:                          true,
		`payload.object["$number"] == "9007199254740993"`:                    true,
		`has(payload.object) && size(payload.object) == 1`:                   true,
		`payload.plain == 12.5 && payload.plain * 2.0 == 25.0`:               true,
		`"$tagged" in payload`:                                               false,

		`payload.id + 1.0 > 0.0`:                 "arithmetic with a number that a double cannot hold",
		`2.0 * payload.id > 0.0`:                 "no such overload",
		`-payload.id < 0.0`:                      "arithmetic with a number that a double cannot hold",
		`payload.id > "1"`:                       "no such overload",
		`payload.id == "9007199254740993"`:       "double is compared with string",
		`payload.object == 9007199254740993`:     "map is compared with int",
		`payload.object > 1`:                     "no such overload",
		`payload.id in {9007199254740993: true}`: "is no key",
		`{9007199254740993: true}[payload.id]`:   "invalid qualifier type",
		`payload.deep[payload.id] == 1`:          "",
		`int(payload.huge) > 0`:                  "overflow",
		`uint(payload.minus) > 0u`:               "overflow",
		`decimal(payload.huge) > decimal(1)`:     "out of range",
		`decimal(payload.amount) > decimal(1)`:   "out of range",
		`payload.id > 1.0 / 0.0`:                 "",
		`bool(payload.id)`:                       "",
		`timestamp(payload.id) < now`:            "",
		`size(payload.id) > 0`:                   "no such overload",
	} {
		requires := ""
		if strings.Contains(when, "[payload") {
			requires = `,"requires":[]`
		}
		for _, decision := range []string{"deny", "allow"} {
			c := compile(t, withWhen(t, decision, when, requires))
			o := decide(c, at(payload))
			why, isError := want.(string)
			switch {
			case isError && decision == "deny" && (o.RuleID != "r" || !strings.Contains(o.Reason, "could not be evaluated") || !strings.Contains(o.Reason, why)):
				t.Errorf("%s under deny: got %+v, want the error %q", when, o, why)
			case isError && decision == "allow" && o.RuleID == "r":
				t.Errorf("%s under allow: allowed", when)
			case !isError && ((o.RuleID == "r") != want || strings.Contains(o.Reason, "could not")):
				t.Errorf("%s under %s: got %v, want %v (%s)", when, decision, o.RuleID == "r", want, o.Reason)
			}
		}
	}
}

// A double and an integer of the condition that no double holds are compared by their values, and so
// different numbers never become one.
func TestLargeIntegersInConditions(t *testing.T) {
	const payload = `{"even":9007199254740996,"list":[9007199254740996],"map":{"id":9007199254740996},"small":12,"two60":1152921504606847000}`
	for when, want := range map[string]bool{
		`payload.even == 9007199254740996`:                     true,
		`payload.even == 9007199254740995`:                     false,
		`9007199254740995 == payload.even`:                     false,
		`payload.even != 9007199254740997u`:                    true,
		`payload.even > 9007199254740995`:                      true,
		`payload.even >= 9007199254740997`:                     false,
		`9007199254740997 > payload.even`:                      true,
		`payload.even in [9007199254740995, 9007199254740997]`: false,
		`9007199254740995 in payload.list`:                     false,
		`payload.list == [9007199254740995]`:                   false,
		`payload.map == {"id": 9007199254740995}`:              false,
		`payload.even in {9007199254740995: true}`:             false,
		`payload.small < 9007199254740995`:                     true,
		`payload.small > -9007199254740995`:                    true,
		`payload.two60 == 1152921504606846976`:                 false,
		`payload.two60 == 1152921504606847000`:                 true,
		`int(payload.two60) == 1152921504606846976`:            false,
		`int(payload.two60) == 1152921504606847000`:            true,
		`uint(payload.even) == 9007199254740996u`:              true,
	} {
		for _, decision := range []string{"deny", "allow"} {
			c := compile(t, withWhen(t, decision, when, ""))
			o := decide(c, at(payload))
			if got := o.RuleID == "r"; got != want || strings.Contains(o.Reason, "could not") {
				t.Errorf("%s under %s: got %v, want %v (%s)", when, decision, got, want, o.Reason)
			}
		}
	}
}

// No spelling of an amount passes a policy that denies amounts above 100: not as a tagged number, with
// or without the marker, well-formed or not. Other payloads are judged as before there were tags.
func TestTagsPassNoLimit(t *testing.T) {
	c := compile(t, withWhen(t, "deny", `payload.amount > 100`, ""))
	for _, amount := range []string{
		`5000`, `"5"`, `{"$number":"5000"}`, `{"$number":"9007199254740993"}`, `{"$number":"100.00000000000000000001"}`, `{"$number":"1e+400"}`,
		`{"$number":"50"}`, `{"$number":50}`, `{"$number":"5.0000000000000000000"}`, `{"$number":"abc"}`, `{"$object":{"$number":"5"}}`, `{"$object":5}`,
		`{"$number":"1e-400","x":1}`, `[{"$number":"1e-400"}]`,
	} {
		for _, marker := range []string{``, `"$tagged":true,`, `"$tagged":1,`} {
			if o := decide(c, at(`{`+marker+`"amount":`+amount+`}`)); o.Decision != id.Deny {
				t.Errorf("%s%s: got %+v", marker, amount, o)
			}
		}
	}
	const small = `{"$number":"1e-400"}`
	for payload, want := range map[string]id.Decision{
		`{"$tagged":true,"amount":` + small + `}`:                     id.Allow,
		`{"amount":` + small + `}`:                                    id.Deny, // an object without the marker
		`{"$tagged":true,"amount":` + small + `,"n":{"$number":"1"}}`: id.Deny, // not in recorded form
		`{"$tagged":true,"amount":7}`:                                 id.Allow,
	} {
		if o := decide(c, at(payload)); o.Decision != want {
			t.Errorf("%s: got %+v, want %s", payload, o, want)
		}
	}
}
