package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
)

// MaxTests bounds the tests of a policy.
const MaxTests = 500

// Test is an input with the answer that a policy has to give.
type Test struct {
	Name   string
	Input  Input                      // Now is 0 where the test does not say
	Before map[string]decimal.Decimal // what limits hold before, by limit_id; 0 for others
	Expect Expectation
}

// Expectation is what a test looks at of an outcome.
type Expectation struct {
	Decision id.Decision
	RuleID   string   // "" for any
	Shadow   []string // nil for any
}

type testDocument struct {
	Name   string                    `json:"name"`
	Input  inputDocument             `json:"input"`
	Now    *id.Instant               `json:"now"`
	Limits map[string]jsontext.Value `json:"limits"`
	Expect struct {
		Decision id.Decision `json:"decision"`
		RuleID   string      `json:"rule_id"`
		Shadow   []string    `json:"shadow"`
	} `json:"expect"`
}

type inputDocument struct {
	Tool       id.Tool        `json:"tool_name"`
	Agent      *id.Agent      `json:"agent_id"`
	ActorType  *string        `json:"actor_type"`
	ActionKind *string        `json:"action_kind"`
	Payload    jsontext.Value `json:"payload"`
}

// What an input is taken to be where it does not say.
const (
	DefaultActorType = "agent"
	testAgent        = "test-agent"
)

// test reads the test at i.
func (d *testDocument) test(i int) (Test, error) {
	t := Test{Name: d.Name, Expect: Expectation(d.Expect)}
	t.Input = Input{Tool: d.Input.Tool, Agent: testAgent, ActorType: DefaultActorType, ActionKind: CountedKind}
	if d.Input.Agent != nil {
		t.Input.Agent = *d.Input.Agent
	}
	if d.Input.ActorType != nil {
		t.Input.ActorType = *d.Input.ActorType
	}
	if d.Input.ActionKind != nil {
		t.Input.ActionKind = *d.Input.ActionKind
	}
	if d.Now != nil {
		t.Input.Now = *d.Now
	}
	for limit, value := range d.Limits {
		before, ok := parseDecimal(value)
		if !ok {
			return t, invalid(testMember(i, "limits"), "must give each limit_id a number")
		}
		if t.Before == nil {
			t.Before = make(map[string]decimal.Decimal)
		}
		t.Before[limit] = before
	}
	if payload := d.Input.Payload; payload != nil && string(payload) != "null" {
		canonical, err := jcs.Canonicalize(payload, jcs.MaxDepth)
		if err != nil || canonical[0] != '{' {
			return t, invalid(testMember(i, "input.payload"), "must be a JSON object with exact numbers")
		}
		t.Input.Payload = slices.Clone(canonical)
	}
	return t, nil
}

func testMember(i int, name string) string { return fmt.Sprintf("tests[%d].%s", i, name) }

// checkTests looks at all tests.
func (p *Policy) checkTests() error {
	if len(p.Tests) > MaxTests {
		return invalid("tests", "must not be more than 500")
	}
	known := make(map[string]bool)
	for i := range p.Rules {
		if l := p.Rules[i].Limit; l != nil {
			known[l.ID] = true
		}
	}
	for i := range p.Tests {
		if err := p.Tests[i].check(i, known); err != nil {
			return err
		}
	}
	return nil
}

func (t *Test) check(i int, limits map[string]bool) error {
	in := &t.Input
	switch {
	case !validText(t.Name, MaxName):
		return invalid(testMember(i, "name"), "must have at most 256 characters, none of them a control character")
	case !validTool(string(in.Tool)):
		return invalid(testMember(i, "input.tool_name"), "must be a tool name, segments with dots between them")
	case !validAgent(string(in.Agent)):
		return invalid(testMember(i, "input.agent_id"), "is not an agent id")
	case !validToken(in.ActorType):
		return invalid(testMember(i, "input.actor_type"), "must match [a-z][a-z0-9_]{0,63}")
	case !validToken(in.ActionKind):
		return invalid(testMember(i, "input.action_kind"), "must match [a-z][a-z0-9_]{0,63}")
	case t.Expect.Decision.String() == "":
		return invalid(testMember(i, "expect.decision"), "must be allow, deny or allow_with_obligation")
	case t.Expect.RuleID != "" && !validID(t.Expect.RuleID):
		return invalid(testMember(i, "expect.rule_id"), "is not a rule id")
	}
	for limit, before := range t.Before {
		if !limits[limit] || before.Sign() < 0 {
			return invalid(testMember(i, "limits"), "must give limits of the policy numbers that are not negative")
		}
	}
	for _, rule := range t.Expect.Shadow {
		if !validID(rule) {
			return invalid(testMember(i, "expect.shadow"), "must be rule ids")
		}
	}
	return nil
}

// Failure is a test that did not pass.
type Failure struct {
	Place int // in Policy.Tests
	Name  string
	Why   string
}

// String names the test and says what was wrong.
func (f Failure) String() string {
	return fmt.Sprintf("tests[%d] %q: %s", f.Place, f.Name, f.Why)
}

// RunTests returns the tests that do not pass.
func (c *Compiled) RunTests(tests []Test) []Failure {
	var failures []Failure
	for i := range tests {
		if why := c.run(&tests[i]); why != "" {
			failures = append(failures, Failure{i, tests[i].Name, why})
		}
	}
	return failures
}

// run says why a test does not pass, "" when it does.
func (c *Compiled) run(t *Test) string {
	if t.Input.Now == 0 && c.looksAtTime() {
		return "the policy looks at now: the test must say what it is"
	}
	e := c.Evaluate(t.Input)
	o := e.Settle(func(claim *Claim) bool { return claim.Exceeds(t.Before[claim.Limit.ID]) })
	want := &t.Expect
	switch {
	case o.Decision != want.Decision:
		return fmt.Sprintf("got %s by %s, want %s. %s", o.Decision, o.RuleID, want.Decision, o.Reason)
	case want.RuleID != "" && o.RuleID != want.RuleID:
		return fmt.Sprintf("got rule %s, want %s. %s", o.RuleID, want.RuleID, o.Reason)
	case want.Shadow != nil && !slices.Equal(o.Shadow, want.Shadow):
		return fmt.Sprintf("got shadow rules [%s], want [%s]", strings.Join(o.Shadow, " "), strings.Join(want.Shadow, " "))
	}
	return ""
}

func (c *Compiled) looksAtTime() bool {
	looks := func(t target) bool { return t.when != nil && t.when.now }
	return slices.ContainsFunc(c.enforcing, looks) || slices.ContainsFunc(c.shadowing, looks)
}
