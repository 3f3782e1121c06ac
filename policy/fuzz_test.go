package policy_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/policy"
)

// For every condition and payload: nothing panics, the derived requirements are stable, the outcome is one
// of the known ones, and evaluation takes no longer than its cost allows.
func FuzzCondition(f *testing.F) {
	for _, when := range []string{
		`payload.a > 1`, `has(payload.a) && payload.a.b == "x"`, `payload["x y"][3] in ["a", 1, null]`, `decimal(payload.a) - decimal("1") < decimal(2)`,
		`payload.s.matches("(a|b)*c") || payload.s.contains(payload.t)`, `now.getHours("+02:00") < 9 ? payload.a : payload.b`, `size(payload) == {"a": [1]}["a"][0]`,
		`timestamp(payload.s) - duration("1h") > now`, `string(payload.a) + payload.s == "x"`, `!payload.a`, `-payload.a < int(payload.s)`, `payload == payload.a`, `type(payload.a) == list`,
	} {
		for _, payload := range []string{`{}`, `{"a":1,"b":true,"s":"abc","t":"b"}`, `{"a":{"b":"x"},"x y":[1,2,3,"a"]}`, `{"a":"1.5","s":"2026-05-18T00:00:00Z"}`} {
			f.Add(when, payload, false)
		}
	}
	for _, when := range []string{
		`payload.a > 9007199254740993 && payload.b in [payload.a, 1.5]`, `-payload.a + payload.b * 2.0 > 1.0`, `{1: 2.0}[payload.a] > 1.0`, `int(payload.a) > uint(payload.b)`,
		`payload.c == payload.a || string(payload.b) == string(payload.a)`, `decimal(payload.a) + decimal(payload.b) > decimal(1)`, `payload.c["$number"] == [payload.a]`, `payload.c[payload.a] < now`,
	} {
		f.Add(when, `{"$tagged":true,"a":{"$number":"9007199254740993"},"b":{"$number":"1e-400"},"c":{"$object":{"$number":[1]}}}`, true)
	}
	f.Fuzz(func(t *testing.T, when, payload string, free bool) {
		text, err := json.Marshal(when)
		if err != nil {
			return
		}
		canonical, err := jcs.Canonicalize([]byte(payload), jcs.MaxDepth)
		if err != nil || canonical[0] != '{' {
			return
		}
		more := ""
		if free {
			more = `,"requires":[]`
		}
		p, err := policy.Parse(fmt.Appendf(nil, `{"policy_id":"p","version":1,"name":"n","rules":[
			{"rule_id":"d","tool":"**","decision":"deny","when":%s%s},{"rule_id":"s","tool":"**","decision":"allow","mode":"shadow","when":%s%s}]}`, text, more, text, more))
		if err != nil {
			if k := fault.Of(err).Kind; k != fault.Invalid && k != fault.TooLarge {
				t.Fatalf("%q: kind %d: %v", when, k, err)
			}
			return
		}
		again, err := policy.Parse(p.Canonical())
		if err != nil || again.Digest() != p.Digest() {
			t.Fatalf("%s: not stable: %v", p.Canonical(), err)
		}
		in := at(string(canonical))
		began := time.Now()
		e := compile(t, p).Evaluate(in)
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%q of %d bytes took %s", when, len(canonical), took)
		}
		o := e.Settle(nil)
		if o.Decision != id.Deny && o.RuleID != policy.DefaultRule {
			t.Errorf("got %+v", o)
		}
		x, err := policy.Explain(t.Context(), p, in)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Settle(nil); got.Decision != o.Decision || got.Reason != o.Reason || len(got.Shadow) != len(o.Shadow) {
			t.Errorf("%q: explained as %+v, evaluated as %+v", when, got, o)
		}
		// If the condition denies because of an error, the same condition does not allow.
		if failed := x.Rules[0].Result == policy.ResultError; failed != (x.Rules[1].Result == policy.ResultSkipped) {
			t.Errorf("%q: deny %s, allow %s", when, x.Rules[0].Result, x.Rules[1].Result)
		}
	})
}

// A path and its text determine each other.
func FuzzRequires(f *testing.F) {
	for _, path := range []string{"a", "a.b[0]", `a."b c"`, `"payload".x`, "payload.x", `"é\n"`, "a..b", "[0]", `"`, `a."b`} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		text, err := json.Marshal([]string{path})
		if err != nil {
			return
		}
		p, err := policy.Parse(fmt.Appendf(nil, `{"policy_id":"p","version":1,"name":"n","rules":[{"rule_id":"r","tool":"**","decision":"deny","requires":%s}]}`, text))
		if err != nil {
			return
		}
		again, err := policy.Parse(p.Canonical())
		if err != nil || again.Rules[0].Requires[0] != p.Rules[0].Requires[0] {
			t.Errorf("%q: got %q, then %v, %v", path, p.Rules[0].Requires, again.Rules, err)
		}
		compile(t, p).Evaluate(at(`{"a":{"b c":1,"b":[1]}}`))
	})
}
