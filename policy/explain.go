package policy

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
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
// those that Evaluate has no need to try. The evaluation is that of Compile(p).
func Explain(p Policy, in Input) (Explanation, error) {
	c, err := Compile(p)
	if err != nil {
		return Explanation{}, err
	}
	traced, err := p.conditions(cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return Explanation{}, err
	}
	x := Explanation{Evaluation: c.Evaluate(in)}
	for i := range p.Rules {
		t := c.target(&p.Rules[i], nil)
		told := RuleExplanation{RuleID: p.Rules[i].ID, Mode: p.Rules[i].Mode}
		if told.Result = p.Rules[i].excludes(&t, &in); told.Result == "" {
			told.judge(&p.Rules[i], &t, traced[i], in)
		}
		x.Rules = append(x.Rules, told)
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
func (x *RuleExplanation) judge(r *Rule, t *target, traced *condition, in Input) {
	a := &attempt{in: in}
	t.when = traced
	v, why := t.judge(a)
	x.Why = why
	x.Result = map[verdict]Result{
		unmatched: ResultWhen, skipped: ResultSkipped, matched: ResultMatch, failed: ResultError, limited: ResultLimit,
	}[v]
	if traced != nil && a.missing(t.requires) == "" {
		x.Steps = traced.trace(r.When, a)
	}
}

// trace evaluates the condition and tells what its parts came to.
func (c *condition) trace(source string, a *attempt) []Step {
	_, details, _ := c.program.Eval(a)
	env, err := newEnvironment()
	if err != nil || details == nil {
		return nil
	}
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return nil
	}
	native := parsed.NativeRep()
	var steps []Step
	var tell func(e ast.Expr)
	tell = func(e ast.Expr) {
		for _, child := range children(e) {
			tell(child)
		}
		if step, ok := stepOf(e, native.SourceInfo(), details.State()); ok {
			steps = append(steps, step)
		}
	}
	tell(native.Expr())
	return steps
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

// shownValue is how many bytes of a value are shown.
const shownValue = 200

// show returns a value as text.
func show(v ref.Val) string {
	text := ""
	switch v := v.(type) {
	case *types.Err:
		text = "error: " + v.Error()
	case *object:
		text = string(v.raw)
	case *list:
		text = string(v.raw)
	case amount:
		text = "decimal(\"" + v.String() + "\")"
	case types.Timestamp:
		text = v.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	case types.String:
		text = fmt.Sprintf("%q", string(v))
	default:
		text = fmt.Sprint(v.Value())
	}
	return oneLine(text, shownValue)
}
