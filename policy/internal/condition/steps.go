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
	Value      string // as CEL or JSON, truncated; or "error: " and the failure
}

// ForgetSteps discards the values that the last condition recorded.
func (a *Attempt) ForgetSteps() { a.state = nil }

// Steps returns the values of the parts of the condition that a evaluated last. It returns nil if
// the condition is not traced or nothing was evaluated since ForgetSteps.
func (c *Compiler) Steps(made *Condition, a *Attempt) []Step {
	if a.state == nil || a.ended != nil {
		return nil
	}
	return collectSteps(c.env, made.source, a.state)
}

// collectSteps returns the values of the parts of a condition.
func collectSteps(env *cel.Env, source string, state interpreter.EvalState) []Step {
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return nil
	}
	native := parsed.NativeRep()
	var all []Step
	var collect func(e ast.Expr)
	collect = func(e ast.Expr) {
		for _, child := range operands(e) {
			collect(child)
		}
		if step, ok := newStep(e, native.SourceInfo(), state); ok {
			all = append(all, step)
		}
	}
	collect(native.Expr())
	return all
}

// newStep returns the value of e. ok is false if e has none or is a literal.
func newStep(e ast.Expr, info *ast.SourceInfo, state interpreter.EvalState) (Step, bool) {
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
