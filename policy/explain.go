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

// RuleExplanation tells how far one rule went.
type RuleExplanation struct {
	RuleID string
	Mode   Mode
	Result Result
	Why    string // for ResultError and ResultSkipped
	Steps  []Step // of a condition that was evaluated, in the order of its text, the whole last
}

// Result tells programs how a rule ended.
type Result string

const (
	ResultTool    Result = "other_tool"  // its glob does not match
	ResultAgent   Result = "other_agent" // it is for other agents
	ResultWhen    Result = "unmatched"   // its condition does not hold
	ResultSkipped Result = "skipped"     // it could not be evaluated, and allows
	ResultError   Result = "failed"      // it could not be evaluated, and so matches
	ResultLimit   Result = "limited"     // it matches if its limit is exceeded
	ResultMatch   Result = "matched"
)

// Step is a part of a condition and its value.
type Step struct {
	Expression string // as CEL
	Value      string // as CEL or JSON shows it, cut; or "error: " and the failure
}

// Explain evaluates p, which Parse returned, and returns the result of each rule, also of rules that
// Evaluate has no need to try. The evaluation is that of Compile(p). The results of the rules cost
// at most MaxTotalCost again; rules beyond that are reported as too expensive. Explain ends with
// ctx.
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
	a := condition.NewAttempt(ctx, in.variables(), MaxTotalCost)
	for i := range p.Rules {
		r, t := &p.Rules[i], c.prepareRule(&p.Rules[i], traced[i])
		told := RuleExplanation{RuleID: r.ID, Mode: r.Mode}
		if told.Result = r.excludesInput(&t, &in); told.Result == "" {
			told.explainVerdict(&t, a, compiler)
		}
		x.Rules = append(x.Rules, told)
	}
	if err := a.Ended(); err != nil {
		return Explanation{}, fmt.Errorf("explain policy: %w", err)
	}
	return x, nil
}

// excludesInput says why a rule is not about in, "" when it is.
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
	}
	return ""
}

// explainVerdict evaluates the rule, with a trace of its condition.
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
