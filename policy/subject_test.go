package policy_test

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/policy"
)

const (
	login = "https://login.example"
	other = "https://other.example"
)

// withSubject returns in on behalf of a subject, or in if the issuer is "".
func withSubject(in policy.Input, issuer, subject string, verified bool) policy.Input {
	if issuer != "" {
		in.OnBehalfOf, in.Verified = &event.OnBehalfOf{Issuer: issuer, Subject: subject}, verified
	}
	return in
}

// judgedSubjects are the subjects of the tests, the first one is none.
var judgedSubjects = []struct {
	issuer, subject string
	verified        bool
}{
	{}, {login, "alice", false}, {login, "alice", true}, {login, "bob", false}, {login, "bob", true}, {other, "alice", false}, {other, "alice", true},
	{login, "spiffe://example.org/planner", true}, {login, "Alice", true},
}

func TestRulesOfSubjects(t *testing.T) {
	for rule, want := range map[string]string{ // for each of judgedSubjects: whether the rule matches
		`"on_behalf_of":{"issuer":"https://login.example"}`:                                    ".mmmm..mm",
		`"on_behalf_of":{"issuer":"https://login.example","subject":"alice"}`:                  ".mm......",
		`"on_behalf_of":{"issuer":"https://login.example","subject":"alice","verified":true}`:  "..m......",
		`"on_behalf_of":{"issuer":"https://login.example","verified":true}`:                    "..m.m..mm",
		`"on_behalf_of":{"verified":true}`:                                                     "..m.m.mmm",
		`"on_behalf_of":{"issuer":"https://login.example/"}`:                                   ".........",
		`"when":"on_behalf_of.issuer == 'https://other.example'"`:                              "e....mm..",
		`"when":"on_behalf_of.subject == payload.customer"`:                                    "emm..mm..",
		`"when":"on_behalf_of.verified"`:                                                       "e.m.m.mmm",
		`"when":"!on_behalf_of.verified"`:                                                      "em.m.m...",
		`"when":"on_behalf_of.subject.startsWith('spiffe://')"`:                                "e......m.",
		`"when":"payload.customer == 'alice' || on_behalf_of.verified"`:                        "emmmmmmmm",
		`"when":"payload.customer == 'bob' && on_behalf_of.verified"`:                          "e........",
		`"when":"has(payload.nothing) && on_behalf_of.verified"`:                               "e........",
		`"when":"has(payload.nothing) ? on_behalf_of.verified : false","requires":[]`:          "e........",
		`"when":"[on_behalf_of.subject, 'x'][0] == 'bob'"`:                                     "e..mm....",
		`"when":".on_behalf_of.subject == 'bob'"`:                                              "e..mm....",
		`"when":"payload.on_behalf_of.subject == 'bob'"`:                                       "mmmmmmmmm",
		`"on_behalf_of":{"verified":true},"when":"on_behalf_of.subject == payload.customer"`:   "..m...m..",
		`"on_behalf_of":{"issuer":"https://login.example"},"when":"payload.missing == 'x'"`:    ".eeee..ee",
		`"on_behalf_of":{"issuer":"https://login.example","subject":"alice"},"agents":["agt"]`: ".........",
	} {
		for _, decision := range []string{"deny", "allow", "allow_with_obligation"} {
			p := parse(t, fmt.Sprintf(`{"policy_id":"p","version":1,"name":"n","default":%q,"rules":[{"rule_id":"r","tool":"**","decision":%q,%s}]}`,
				opposite(decision), decision, rule))
			c := compile(t, p)
			got := ""
			for _, s := range judgedSubjects {
				in := withSubject(at(`{"customer":"alice","on_behalf_of":{"subject":"bob"}}`), s.issuer, s.subject, s.verified)
				o := decide(c, in)
				x, err := policy.Explain(t.Context(), p, in)
				if err != nil {
					t.Fatal(err)
				}
				failed := o.RuleError != "" || x.Rules[0].Result == policy.ResultSkipped
				if o.RuleID == "r" == (decision == "allow") && failed {
					t.Errorf("%s %s: a rule error of %s gives %+v", decision, rule, s.subject, o)
				}
				switch {
				case failed:
					got += "e"
				case o.RuleID == "r":
					got += "m"
				default:
					got += "."
				}
				explained(t, p, in, o)
			}
			if got != want {
				t.Errorf("%s %s: got %s, want %s", decision, rule, got, want)
			}
		}
	}
}

// A rule error says which member is missing, and nothing about the payload.
func TestReasonWithoutSubject(t *testing.T) {
	c := compile(t, withWhen(t, "deny", `on_behalf_of.subject == payload.customer`, ""))
	o := decide(c, at(`{"customer":"alice"}`))
	if want := "Rule r could not be evaluated and so says deny: on_behalf_of is missing."; o.Reason != want || o.Decision != id.Deny {
		t.Errorf("got %q, want %q", o.Reason, want)
	}
}

func TestExplainSubjects(t *testing.T) {
	p := parse(t, `{"policy_id":"p","version":1,"name":"n","rules":[
		{"rule_id":"a","tool":"**","decision":"deny","on_behalf_of":{"issuer":"https://login.example","subject":"alice"}},
		{"rule_id":"w","tool":"**","decision":"deny","when":"on_behalf_of.subject == payload.customer && on_behalf_of.verified"}]}`)
	x, err := policy.Explain(t.Context(), p, withSubject(at(`{"customer":"bob"}`), login, "bob", true))
	if err != nil {
		t.Fatal(err)
	}
	want := []policy.RuleExplanation{
		{RuleID: "a", Mode: policy.Enforce, Result: policy.ResultSubject},
		{RuleID: "w", Mode: policy.Enforce, Result: policy.ResultMatch, Steps: []policy.Step{
			{"on_behalf_of.subject", `"bob"`}, {"payload.customer", `"bob"`}, {"on_behalf_of.subject == payload.customer", "true"},
			{"on_behalf_of.verified", "true"}, {"on_behalf_of.subject == payload.customer && on_behalf_of.verified", "true"}}},
	}
	if got := x.Rules; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestParseRefusesSubjects(t *testing.T) {
	for rule, want := range map[string]string{
		`"on_behalf_of":{}`:                                                 "rules[0].on_behalf_of must have issuer, subject or verified",
		`"on_behalf_of":{"subject":"alice"}`:                                "rules[0].on_behalf_of.subject needs issuer, because another issuer may use the same subject",
		`"on_behalf_of":{"issuer":"https://a.example","subject":""}`:        "rules[0].on_behalf_of.subject must not be empty: leave it out",
		`"on_behalf_of":{"issuer":""}`:                                      "rules[0].on_behalf_of.issuer must not be empty: leave it out",
		`"on_behalf_of":{"issuer":"ldap://a.example"}`:                      "rules[0].on_behalf_of.issuer must be an https URL without user, query and fragment, at most 512 bytes",
		`"on_behalf_of":{"issuer":"https://a.example","subject":"a\u0001"}`: "rules[0].on_behalf_of.subject must be 1 to 255 characters without control characters, or a SPIFFE ID of at most 2048 bytes",
		`"on_behalf_of":{"verified":false}`:                                 "rules[0].on_behalf_of.verified must be true: leave it out",
		`"on_behalf_of":{"issuer":"https://a.example","actors":[]}`:         "rules[0].on_behalf_of.actors is not a member that this server knows",
		`"on_behalf_of":"https://a.example"`:                                "rules[0].on_behalf_of has a value of the wrong type or form",
		`"on_behalf_of":{"verified":"true"}`:                                "rules[0].on_behalf_of.verified has a value of the wrong type or form",
		`"when":"on_behalf_of.actors == 'x'"`:                               "rules[0].when does not compile: undeclared reference to 'on_behalf_of.actors' (did you mean 'on_behalf_of.issuer'?) (line 1, column 13)",
		`"when":"has(on_behalf_of.subject)"`:                                "rules[0].when does not compile: undeclared reference to 'on_behalf_of' (line 1, column 5)",
		`"when":"on_behalf_of.verified == 'true'"`:                          "rules[0].when does not compile: found no matching overload for '_==_' applied to '(bool, string)' (line 1, column 23)",
	} {
		_, err := policy.Parse([]byte(`{"policy_id":"p","version":1,"name":"n","rules":[{"rule_id":"r","tool":"**","decision":"deny",` + rule + `}]}`))
		if got := fault.Of(err); err == nil || got.Kind != fault.Invalid || got.Message != want {
			t.Errorf("%s: got %v, want %s", rule, err, want)
		}
	}
	for more, want := range map[string]string{
		`"v":1`:   "v must be 2 or absent",
		`"v":3`:   "v must be 2 or absent",
		`"v":"2"`: "v has a value of the wrong type or form",
		`"tests":[{"name":"t","input":{"tool_name":"a","on_behalf_of":{"issuer":"https://a.example"}},"expect":{"decision":"deny"}}]`:                               "tests[0].input.on_behalf_of is malformed: Missing on_behalf_of.subject",
		`"tests":[{"name":"t","input":{"tool_name":"a","on_behalf_of":"x"},"expect":{"decision":"deny"}}]`:                                                          "tests[0].input.on_behalf_of is malformed: on_behalf_of must be an object",
		`"tests":[{"name":"t","input":{"tool_name":"a","on_behalf_of_verified":true},"expect":{"decision":"deny"}}]`:                                                "tests[0].input.on_behalf_of_verified needs on_behalf_of",
		`"tests":[{"name":"t","input":{"tool_name":"a","on_behalf_of_verified":1},"expect":{"decision":"deny"}}]`:                                                   "tests[0].input.on_behalf_of_verified has a value of the wrong type or form",
		`"tests":[{"name":"t","input":{"tool_name":"a","on_behalf_of":{"issuer":"https://a.example","subject":"a","verified":true}},"expect":{"decision":"deny"}}]`: `tests[0].input.on_behalf_of is malformed: on_behalf_of has a member that is not known: "verified"`,
	} {
		_, err := policy.Parse([]byte(`{"policy_id":"p","version":1,"name":"n","rules":[],` + more + `}`))
		if got := fault.Of(err); err == nil || got.Kind != fault.Invalid || got.Message != want {
			t.Errorf("%s: got %v, want %s", more, err, want)
		}
	}
}

// A document has "v":2 if and only if a rule uses on_behalf_of; all others have the bytes that they had before.
func TestVersionOfDocuments(t *testing.T) {
	const usual = `{"default":"allow","name":"n","policy_id":"p","rules":[{"agents":[],"decision":"deny","limit":null,"mode":"enforce","obligations":[],` +
		`%s"on_error":"match","priority":0,"reason":"","requires":[],"rule_id":"r","tool":"**","when":%s}],%s"version":1}`
	for _, tc := range []struct{ rule, v, want string }{
		{`"requires":[]`, ``, fmt.Sprintf(usual, "", "null", "")},
		{`"requires":[]`, `"v":2,`, fmt.Sprintf(usual, "", "null", "")},
		{`"when":"payload.on_behalf_of == 'x'","requires":[]`, ``, fmt.Sprintf(usual, "", `"payload.on_behalf_of == 'x'"`, "")},
		{`"when":"'on_behalf_of.subject' == agent_id"`, ``, fmt.Sprintf(usual, "", `"'on_behalf_of.subject' == agent_id"`, "")},
		{`"when":"on_behalf_of.verified"`, ``, fmt.Sprintf(usual, "", `"on_behalf_of.verified"`, `"v":2,`)},
		{`"when":"on_behalf_of.verified"`, `"v":2,`, fmt.Sprintf(usual, "", `"on_behalf_of.verified"`, `"v":2,`)},
		{`"on_behalf_of":{"verified":true}`, `"v":null,`, fmt.Sprintf(usual, `"on_behalf_of":{"verified":true},`, "null", `"v":2,`)},
		{`"on_behalf_of":{"verified":true,"subject":"\u00e9\"","issuer":"https://a.example"}`, ``,
			fmt.Sprintf(usual, `"on_behalf_of":{"issuer":"https://a.example","subject":"é\"","verified":true},`, "null", `"v":2,`)},
	} {
		p := parse(t, `{"policy_id":"p","version":1,`+tc.v+`"name":"n","rules":[{"rule_id":"r","tool":"**","decision":"deny",`+tc.rule+`}]}`)
		if got := string(p.Canonical()); got != tc.want {
			t.Errorf("%s %s:\n got %s\nwant %s", tc.v, tc.rule, got, tc.want)
		}
		stored := parseStored(t, p.Document())
		if stored.Digest() != p.Digest() || compile(t, stored).Digest() != p.Digest() {
			t.Errorf("%s: the stored document has another digest", tc.rule)
		}
		if p.Subjects { // a document without v is refused, as by a service that does not know on_behalf_of
			stored = parseStored(t, []byte(strings.Replace(tc.want, `"v":2,`, "", 1)))
			if _, err := policy.Compile(stored); err == nil || fault.Of(err).Message != "v must be 2, because a rule uses on_behalf_of" {
				t.Errorf("%s without v: got %v", tc.rule, err)
			}
		}
	}
}

func TestTestsOfSubjects(t *testing.T) {
	p := parse(t, `{"policy_id":"p","version":1,"name":"n","default":"deny","rules":[
		{"rule_id":"own","tool":"acme.refund","decision":"allow","on_behalf_of":{"issuer":"https://login.example","verified":true},"when":"on_behalf_of.subject == payload.customer"}],
		"tests":[
		{"name":"own","input":{"tool_name":"acme.refund","payload":{"customer":"alice"},"on_behalf_of":{"subject":"alice","issuer":"https://login.example"},"on_behalf_of_verified":true},"expect":{"decision":"allow","rule_id":"own"}},
		{"name":"claimed","input":{"tool_name":"acme.refund","payload":{"customer":"alice"},"on_behalf_of":{"subject":"alice","issuer":"https://login.example"}},"expect":{"decision":"deny","error":false}},
		{"name":"of another","input":{"tool_name":"acme.refund","payload":{"customer":"alice"},"on_behalf_of":{"subject":"bob","issuer":"https://login.example"},"on_behalf_of_verified":true},"expect":{"decision":"deny"}},
		{"name":"none","input":{"tool_name":"acme.refund","payload":{"customer":"alice"}},"expect":{"decision":"deny"}}]}`)
	if failures, err := compile(t, p).RunTests(t.Context(), p.Tests); err != nil || len(failures) > 0 {
		t.Errorf("got %v, %v", failures, err)
	}
	again := parseStored(t, p.Document())
	if got, want := string(again.Document()), string(p.Document()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if canonical, err := jcs.Canonicalize(p.Document(), jcs.MaxDepth); err != nil || string(canonical) != string(p.Document()) {
		t.Errorf("not RFC 8785: %s", p.Document())
	}
}

// The digest of an input without a subject is as it always was; with one, it commits to the member and to its standing.
func TestInputDigestOfSubjects(t *testing.T) {
	in := at(`{"amount":1}`)
	object := func(more string) id.Hash {
		return sha256.Sum256([]byte(`{"action_kind":"tool_call","actor_type":"agent","agent_id":"agt_1",` + more + `"payload":{"amount":1},"tool_name":"acme.pay.refund"}`))
	}
	if got := policy.InputDigest(in); got != object("") {
		t.Errorf("without a subject: got %s", got)
	}
	for member, verified := range map[string]bool{
		`{"issuer":"https://login.example","subject":"alice"}`:   false,
		`{"issuer":"https://login.example","subject":"bob"}`:     true,
		`{"issuer":"https://login.example","subject":"\"é\\ €"}`: true,
		`{"actors":[{"subject":"spiffe://example.org/a"},{"issuer":"https://b.example","subject":"b"}],"issuer":"https://login.example","subject":"alice"}`: true,
	} {
		of, err := event.ParseOnBehalfOf([]byte(member))
		if err != nil {
			t.Fatal(err)
		}
		in.OnBehalfOf, in.Verified = of, verified
		if got, want := policy.InputDigest(in), object(fmt.Sprintf(`"on_behalf_of":%s,"on_behalf_of_verified":%t,`, member, verified)); got != want {
			t.Errorf("%s: got %s, want %s", member, got, want)
		}
	}
}

// A decision about an input without a subject needs no more memory than before, and a rule about a subject needs none.
func TestSubjectsAllocateNothing(t *testing.T) {
	c := compile(t, parse(t, `{"policy_id":"p","version":1,"name":"n","rules":[
		{"rule_id":"a","tool":"**","decision":"deny","on_behalf_of":{"issuer":"https://login.example","subject":"alice"}},
		{"rule_id":"v","tool":"**","decision":"deny","on_behalf_of":{"verified":true}}]}`))
	for _, s := range judgedSubjects {
		in := withSubject(at(`{}`), s.issuer, s.subject, s.verified)
		if got := testing.AllocsPerRun(100, func() { c.Evaluate(in) }); got != 0 {
			t.Errorf("%+v: got %v allocations, want 0", s, got)
		}
	}
	in := at(`{"amount":1}`)
	if got := testing.AllocsPerRun(100, func() { policy.InputDigest(in) }); got != 0 {
		t.Errorf("input_digest: got %v allocations, want 0", got)
	}
}

// subjectRule is a rule of the naive oracle. when has no, one or several of the members of on_behalf_of.
type subjectRule struct {
	id.Decision
	priority         int
	issuer, subject  string
	verified, shadow bool
	when             int
}

// subjectWhens are conditions, and what a reader expects of them. of is nil without a subject.
var subjectWhens = []struct {
	source string
	holds  func(of *event.OnBehalfOf, verified bool, customer string) (holds, failed bool)
}{
	{"", func(*event.OnBehalfOf, bool, string) (bool, bool) { return true, false }},
	{`payload.customer == "alice"`, func(_ *event.OnBehalfOf, _ bool, customer string) (bool, bool) {
		return customer == "alice", customer == ""
	}},
	{`on_behalf_of.issuer == "https://login.example"`, func(of *event.OnBehalfOf, _ bool, _ string) (bool, bool) {
		return of != nil && of.Issuer == login, of == nil
	}},
	{`on_behalf_of.subject == payload.customer`, func(of *event.OnBehalfOf, _ bool, customer string) (bool, bool) {
		return of != nil && of.Subject == customer, of == nil || customer == ""
	}},
	{`on_behalf_of.verified`, func(of *event.OnBehalfOf, verified bool, _ string) (bool, bool) { return verified, of == nil }},
	{`on_behalf_of.verified || on_behalf_of.issuer != "https://login.example" && on_behalf_of.subject != "bob"`, func(of *event.OnBehalfOf, verified bool, _ string) (bool, bool) {
		return of != nil && (verified || of.Issuer != login && of.Subject != "bob"), of == nil
	}},
}

func (r *subjectRule) document(i int) map[string]any {
	d := map[string]any{"rule_id": fmt.Sprintf("r%d", i), "tool": "**", "decision": r.Decision.String(), "priority": r.priority}
	of := map[string]any{}
	if r.issuer != "" {
		of["issuer"] = r.issuer
		if r.subject != "" {
			of["subject"] = r.subject
		}
	}
	if r.verified {
		of["verified"] = true
	}
	if len(of) > 0 {
		d["on_behalf_of"] = of
	}
	if when := subjectWhens[r.when].source; when != "" {
		d["when"] = when
	}
	if r.shadow {
		d["mode"] = "shadow"
	}
	return d
}

// matches judges a rule as the guide describes it.
func (r *subjectRule) matches(of *event.OnBehalfOf, verified bool, customer string) bool {
	if r.issuer != "" && (of == nil || of.Issuer != r.issuer) {
		return false
	}
	if r.issuer != "" && r.subject != "" && of.Subject != r.subject {
		return false
	}
	if r.verified && !verified {
		return false
	}
	holds, failed := subjectWhens[r.when].holds(of, verified, customer)
	if failed {
		return r.Decision != id.Allow
	}
	return holds
}

// For every set of rules about subjects, and every subject, the decision is that of a naive reading of the guide; the document is
// stable; and verification of the subject never loosens what a rule without verified says of it.
func FuzzSubjects(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte{0, 0, 0, 0, 255, 255, 255, 255, 127, 63, 31, 15})
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i * 37)
	}
	for at := range 60 {
		f.Add(every[at*4 : min(at*4+24, 256)])
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		var rules []subjectRule
		var documents []map[string]any
		for len(choices) >= 4 && len(rules) < 12 {
			c := choices[:4]
			r := subjectRule{Decision: id.Decision(1 + c[0]%3), priority: int(c[0] / 3 % 2), issuer: []string{"", login, other}[c[1]%3],
				subject: []string{"", "alice", "bob"}[c[1]/3%3], verified: c[2]%2 == 1, shadow: c[2]/2%4 == 0, when: int(c[3]) % len(subjectWhens)}
			if r.issuer == "" {
				r.subject = ""
			}
			documents, rules, choices = append(documents, r.document(len(rules))), append(rules, r), choices[4:]
		}
		text, err := json.Marshal(map[string]any{"policy_id": "p", "version": 1, "name": "n", "default": "allow", "rules": documents})
		if err != nil {
			t.Fatal(err)
		}
		p := parse(t, string(text))
		uses := slices.ContainsFunc(rules, func(r subjectRule) bool { return r.issuer != "" || r.verified || r.when >= 2 })
		if again := parse(t, string(p.Canonical())); again.Digest() != p.Digest() || p.Subjects != uses || strings.Contains(string(p.Canonical()), `,"v":2,`) != uses {
			t.Fatalf("%s: uses subjects: %v", p.Canonical(), uses)
		}
		compiled := compile(t, p)
		for _, customer := range []string{"", "alice", "bob"} {
			for _, s := range judgedSubjects {
				payload := "{}"
				if customer != "" {
					payload = fmt.Sprintf(`{"customer":%q}`, customer)
				}
				in := withSubject(at(payload), s.issuer, s.subject, s.verified)
				want, decision, priority := "default", id.Allow, -1
				var shadow []string
				for i, r := range rules {
					switch name := fmt.Sprintf("r%d", i); {
					case !r.matches(in.OnBehalfOf, in.Verified, customer):
					case r.shadow:
						shadow = append(shadow, name)
					case r.priority > priority, r.priority == priority && r.Decision > decision:
						want, decision, priority = name, r.Decision, r.priority
					}
				}
				got := decide(compiled, in)
				if got.RuleID != want || got.Decision != decision || !slices.Equal(got.Shadow, shadow) {
					t.Fatalf("%+v, customer %q: got %s %s %v, want %s %s %v\n%s", s, customer, got.RuleID, got.Decision, got.Shadow, want, decision, shadow, p.Canonical())
				}
			}
		}
	})
}
