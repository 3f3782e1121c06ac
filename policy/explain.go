package policy

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/policy/internal/condition"
)

// Explanation is an evaluation and the result of each rule.
type Explanation struct {
	Evaluation
	Rules []RuleExplanation // every rule, in stored order
}

// RuleExplanation is the result of one rule.
type RuleExplanation struct {
	RuleID string
	Mode   Mode
	Result Result
	Why    string // for ResultError and ResultSkipped
	Steps  []Step // of an evaluated condition, in source order, the whole condition last
}

// Result is the result of a rule, for programs.
type Result string

const (
	ResultTool    Result = "other_tool"    // the glob does not match
	ResultAgent   Result = "other_agent"   // the rule is for other agents
	ResultSubject Result = "other_subject" // the rule is for other subjects, or only for verified ones
	ResultWhen    Result = "unmatched"     // the condition does not hold
	ResultSkipped Result = "skipped"       // a rule error in an allow rule, which does not match
	ResultError   Result = "failed"        // a rule error, so the rule matches
	ResultLimit   Result = "limited"       // the rule matches if its limit is exceeded
	ResultMatch   Result = "matched"
)

// Step is a part of a condition and its value.
type Step struct {
	Expression string // as CEL
	Value      string // as CEL or JSON, truncated; or "error: " and the failure
}

// Explain evaluates p, which Parse returned, and returns the result of each rule, including rules
// that Evaluate does not need to try. The evaluation equals that of Compile(p). The results of the
// rules may cost MaxTotalCost in addition; rules beyond that are reported as too expensive. Explain
// stops when ctx ends.
func Explain(ctx context.Context, p Policy, in Input) (Explanation, error) {
	c, err := CompileWithin(ctx, p)
	if err != nil {
		return Explanation{}, err
	}
	evaluation, err := c.EvaluateWithin(ctx, in)
	if err != nil {
		return Explanation{}, err
	}
	compiler := condition.NewCompiler(ctx).Traced()
	traced, err := p.compileConditions(compiler)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Evaluation: evaluation}
	a := condition.NewAttempt(ctx, in.variables(), in.Payload, MaxTotalCost)
	for i := range p.Rules {
		r, t := &p.Rules[i], c.prepareRule(&p.Rules[i], traced[i])
		e := RuleExplanation{RuleID: r.ID, Mode: r.Mode}
		if e.Result = r.excludesInput(&t, &in); e.Result == "" {
			e.explainVerdict(&t, a, compiler)
		}
		x.Rules = append(x.Rules, e)
	}
	if err := a.Ended(); err != nil {
		return Explanation{}, fmt.Errorf("explain policy: %w", err)
	}
	return x, nil
}

// excludesInput returns why a rule does not apply to in, or "" if it does.
func (r *Rule) excludesInput(t *target, in *Input) Result {
	var alone index
	alone.insertGlob(r.Tool, 0)
	found := false
	if in.Tool != "" {
		alone.visitMatches(string(in.Tool), func([]int32) { found = true })
	}
	switch {
	case !found:
		return ResultTool
	case !t.concernsAgent(in.Agent):
		return ResultAgent
	case !t.concernsSubject(in):
		return ResultSubject
	}
	return ""
}

// explainVerdict evaluates the rule with a trace of its condition.
func (x *RuleExplanation) explainVerdict(t *target, a *condition.Attempt, compiler *condition.Compiler) {
	a.ForgetSteps()
	v, why := t.judgeAttempt(a)
	x.Why = why
	x.Result = map[verdict]Result{
		unmatched: ResultWhen, skipped: ResultSkipped, matched: ResultMatch, failed: ResultError, limited: ResultLimit,
	}[v]
	if t.when == nil {
		return
	}
	for _, s := range compiler.Steps(t.when, a) {
		x.Steps = append(x.Steps, Step(s))
	}
}
