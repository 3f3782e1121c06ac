package condition

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"
)

// Step is a part of a condition and its value.
type Step struct {
	Expression string // as CEL
	Value      string // as CEL or JSON shows it, cut; or "error: " and the failure
}

// ForgetSteps drops the values that the last condition kept.
func (a *Attempt) ForgetSteps() { a.state = nil }

// Steps tells what the parts of the condition came to that a evaluated last: nil when
// it was not traced or nothing was evaluated since ForgetSteps.
func (c *Compiler) Steps(made *Condition, a *Attempt) []Step {
	if a.state == nil || a.ended != nil {
		return nil
	}
	return collectSteps(c.env, made.source, a.state)
}

// collectSteps tells what the parts of a condition came to.
func collectSteps(env *cel.Env, source string, state interpreter.EvalState) []Step {
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return nil
	}
	native := parsed.NativeRep()
	var all []Step
	var tell func(e ast.Expr)
	tell = func(e ast.Expr) {
		for _, child := range operandsOf(e) {
			tell(child)
		}
		if step, ok := stepOfExpression(e, native.SourceInfo(), state); ok {
			all = append(all, step)
		}
	}
	tell(native.Expr())
	return all
}

// stepOfExpression tells the value of e, if it has one that is not plain to see.
func stepOfExpression(e ast.Expr, info *ast.SourceInfo, state interpreter.EvalState) (Step, bool) {
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
	return Step{Expression: text, Value: renderValue(v)}, true
}
