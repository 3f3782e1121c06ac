package policy

import (
	"context"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"
)

// Explanation is an evaluation and what each rule had to say.
type Explanation struct {
	Evaluation
	Rules []RuleExplanation // all of them, in stored order
}

// RuleExplanation tells how far one rule went.
type RuleExplanation struct {
	RuleID string
	Mode   Mode
	Result Result
	Why    string // for ResultError and ResultSkipped
	Steps  []Step // of a condition that was evaluated, in the order of its text, the whole last
}

// Result is what became of a rule, as text for programs.
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
	Value      string // as CEL or JSON shows it, cut; or "error: " and what went wrong
}

// Explain evaluates p, which Parse returned, and tells what each rule says, also
// those that Evaluate has no need to try. The evaluation is that of Compile(p). What the
// rules say costs no more than MaxTotalCost again: those behind are told to cost too
// much. It ends with ctx.
func Explain(ctx context.Context, p Policy, in Input) (Explanation, error) {
	c, err := CompileWithin(ctx, p)
	if err != nil {
		return Explanation{}, err
	}
	evaluation, err := c.EvaluateWithin(ctx, in)
	if err != nil {
		return Explanation{}, err
	}
	compiler := newCompiler(ctx)
	compiler.traced = true
	traced, err := compiler.conditions(&p)
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Evaluation: evaluation}
	a := newAttempt(ctx, in, MaxTotalCost)
	for i := range p.Rules {
		r, t := &p.Rules[i], c.target(&p.Rules[i], traced[i])
		told := RuleExplanation{RuleID: r.ID, Mode: r.Mode}
		if told.Result = r.excludes(&t, &in); told.Result == "" {
			told.judge(&t, a, compiler.env)
		}
		x.Rules = append(x.Rules, told)
	}
	if a.ended != nil {
		return Explanation{}, fmt.Errorf("explain policy: %w", a.ended)
	}
	return x, nil
}

// excludes says why a rule is not about in, "" when it is.
func (r *Rule) excludes(t *target, in *Input) Result {
	var alone index
	alone.add(r.Tool, 0)
	found := false
	if in.Tool != "" {
		alone.visit(string(in.Tool), func([]int32) { found = true })
	}
	switch {
	case !found:
		return ResultTool
	case !t.concerns(in.Agent):
		return ResultAgent
	}
	return ""
}

// judge evaluates the rule, with a trace of its condition.
func (x *RuleExplanation) judge(t *target, a *attempt, env *cel.Env) {
	a.state = nil
	v, why := t.judge(a)
	x.Why = why
	x.Result = map[verdict]Result{
		unmatched: ResultWhen, skipped: ResultSkipped, matched: ResultMatch, failed: ResultError, limited: ResultLimit,
	}[v]
	if a.state != nil && a.ended == nil {
		x.Steps = steps(env, t.when.source, a.state)
	}
}

// steps tells what the parts of a condition came to.
func steps(env *cel.Env, source string, state interpreter.EvalState) []Step {
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return nil
	}
	native := parsed.NativeRep()
	var all []Step
	var tell func(e ast.Expr)
	tell = func(e ast.Expr) {
		for _, child := range children(e) {
			tell(child)
		}
		if step, ok := stepOf(e, native.SourceInfo(), state); ok {
			all = append(all, step)
		}
	}
	tell(native.Expr())
	return all
}

// stepOf tells the value of e, if it has one that is not plain to see.
func stepOf(e ast.Expr, info *ast.SourceInfo, state interpreter.EvalState) (Step, bool) {
	if e.Kind() == ast.LiteralKind {
		return Step{}, false
	}
	v, found := state.Value(e.ID())
	if !found {
		return Step{}, false
	}
	text, err := parser.Unparse(e, info)
	if err != nil {
		return Step{}, false
	}
	return Step{Expression: text, Value: show(v)}, true
}
