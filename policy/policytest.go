package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// MaxTests is the maximum number of tests of a policy.
const MaxTests = 500

// Test is a trial with the expected outcome.
type Test struct {
	Name string
	Trial
	Expect Expectation
}

// Expectation is the part of an outcome that a test checks.
type Expectation struct {
	Decision id.Decision
	RuleID   string   // "" accepts any
	Shadow   []string // nil accepts any
	Error    *bool    // whether the deciding rule fails to evaluate; nil accepts both
}

type testDocument struct {
	Name          string `json:"name"`
	trialDocument `json:",inline"`
	Expect        struct {
		Decision id.Decision `json:"decision"`
		RuleID   string      `json:"rule_id"`
		Shadow   []string    `json:"shadow"`
		Error    *bool       `json:"error"`
	} `json:"expect"`
}

// toTest converts the test at i.
func (d *testDocument) toTest(i int) (Test, error) {
	trial, err := d.toTrial(testMemberPath(i, ""))
	return Test{Name: d.Name, Trial: trial, Expect: Expectation(d.Expect)}, err
}

func testMemberPath(i int, name string) string { return fmt.Sprintf("tests[%d].%s", i, name) }

// checkTests checks all tests.
func (p *Policy) checkTests() error {
	if len(p.Tests) > MaxTests {
		return invalidMember("tests", "must not be more than 500")
	}
	known := p.namedLimits()
	for i := range p.Tests {
		if err := p.Tests[i].checkMembers(i, known); err != nil {
			return err
		}
	}
	return nil
}

func (t *Test) checkMembers(i int, limits map[string]bool) error {
	switch {
	case !textcheck.Plain(t.Name, 0, MaxName):
		return invalidMember(testMemberPath(i, "name"),
			"must have at most 256 characters, none of them a control character")
	case t.Expect.Decision.String() == "":
		return invalidMember(testMemberPath(i, "expect.decision"), "must be allow, deny or allow_with_obligation")
	case t.Expect.RuleID != "" && !isValidID(t.Expect.RuleID):
		return invalidMember(testMemberPath(i, "expect.rule_id"), "is not a rule id")
	}
	for _, rule := range t.Expect.Shadow {
		if !isValidID(rule) {
			return invalidMember(testMemberPath(i, "expect.shadow"), "must be rule ids")
		}
	}
	return t.Trial.checkMembers(testMemberPath(i, ""), limits)
}

// RunTestsStrictly is RunTests, but a test that does not mention errors fails if the deciding rule
// cannot be evaluated. A misspelt payload member causes such an error and may still give the
// expected decision.
func (c *Compiled) RunTestsStrictly(ctx context.Context, tests []Test) ([]Failure, error) {
	strict := slices.Clone(tests)
	for i := range strict {
		if strict[i].Expect.Error == nil {
			strict[i].Expect.Error = new(bool)
		}
	}
	return c.RunTests(ctx, strict)
}

// Failure is a test that failed.
type Failure struct {
	Place int // in Policy.Tests
	Name  string
	Why   string
}

// String names the test and describes the difference.
func (f Failure) String() string {
	return fmt.Sprintf("tests[%d] %q: %s", f.Place, f.Name, f.Why)
}

// RunTests returns the tests that fail. All tests together may cost MaxTestCost; the tests after
// that fail. It stops when ctx ends.
func (c *Compiled) RunTests(ctx context.Context, tests []Test) ([]Failure, error) {
	var failures []Failure
	spent := uint64(0)
	for i := range tests {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("run tests: %w", err)
		}
		cost, why, err := c.runTest(ctx, &tests[i], spent)
		if err != nil {
			return nil, fmt.Errorf("run tests: %w", err)
		}
		if why != "" {
			failures = append(failures, Failure{i, tests[i].Name, why})
		}
		spent += cost
	}
	return failures, nil
}

// runTest returns the cost of a test and the reason why it fails, or "". spent is the cost of the
// tests before it.
func (c *Compiled) runTest(ctx context.Context, t *Test, spent uint64) (cost uint64, why string, err error) {
	if spent >= MaxTestCost {
		return 0, "the tests before it cost all that tests may cost together", nil
	}
	if t.Input.Now == 0 && c.looksAtTime() {
		return 0, "the policy looks at now: the test must say what it is", nil
	}
	a := occasion{ctx: ctx, in: t.Input}
	e := c.evaluateRules(&a, true)
	if a.try != nil {
		cost, err = a.try.Spent(), a.try.Ended()
	}
	return cost, t.Expect.differenceFrom(e.Settle(t.Exceeds)), err
}

// differenceFrom describes how an outcome differs from the expected one, or returns "".
func (want *Expectation) differenceFrom(o Outcome) string {
	switch {
	case o.Decision != want.Decision:
		return fmt.Sprintf("got %s by %s, want %s. %s", o.Decision, o.RuleID, want.Decision, o.Reason)
	case want.RuleID != "" && o.RuleID != want.RuleID:
		return fmt.Sprintf("got rule %s, want %s. %s", o.RuleID, want.RuleID, o.Reason)
	case want.Error != nil && *want.Error != (o.RuleError != ""):
		return want.describeError(o)
	case want.Shadow != nil && !slices.Equal(o.Shadow, want.Shadow):
		return fmt.Sprintf("got shadow rules [%s], want [%s]", strings.Join(o.Shadow, " "),
			strings.Join(want.Shadow, " "))
	}
	return ""
}

func (want *Expectation) describeError(o Outcome) string {
	if *want.Error {
		return fmt.Sprintf("got %s by %s without a rule error. %s", o.Decision, o.RuleID, o.Reason)
	}
	return fmt.Sprintf(`got %s by %s because of a rule error, and the test does not expect one by "error": true. %s`,
		o.Decision, o.RuleID, o.Reason)
}

func (c *Compiled) looksAtTime() bool {
	looks := func(t target) bool { return t.when != nil && t.when.LooksAtTime() }
	return slices.ContainsFunc(c.enforcing, looks) || slices.ContainsFunc(c.shadowing, looks)
}
