package condition

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// ordinary is the assumed size in bytes of the texts, arrays and objects of a payload when a
// condition is saved.
const ordinary = 4096

// estimator estimates the maximum cost of a condition for an ordinary payload.
type estimator struct {
	native   *ast.AST
	patterns *patterns
	failed   error // of the first pattern that does not compile
}

// checkEstimate rejects a condition that would cost too much, or that has a pattern which does not
// compile within the bounds of the policy.
func (x *estimator) checkEstimate() error {
	var units uint64
	walkExpressions(x.native.Expr(), func(e ast.Expr) { units += 1 + x.estimatePrice(e) })
	if x.failed != nil {
		return x.failed
	}
	if units > MaxCost {
		return fmt.Errorf("costs too much: up to %d units with texts of %d bytes, more than %d",
			units, ordinary, MaxCost)
	}
	return nil
}

// estimatePrice returns the price of e without its node and its operands.
func (x *estimator) estimatePrice(e ast.Expr) uint64 {
	if e.Kind() != ast.CallKind {
		return 0
	}
	all := operands(e)
	if name := e.AsCall().FunctionName(); name == "matches" {
		return x.estimateMatch(e.AsCall(), all[0])
	} else if price := pricerFor(name); price != nil && len(all) > 0 {
		return price(x.estimateExtent(all[0]), x.estimateExtent(all[len(all)-1]))
	}
	return 0
}

func (x *estimator) estimateMatch(call ast.CallExpr, text ast.Expr) uint64 {
	if x.failed != nil {
		return 0
	}
	pattern, err := x.patterns.compilePattern(literalPattern(call))
	if err != nil {
		x.failed = err
		return 0
	}
	return matchPrice(int(x.estimateExtent(text)*bytesPerUnit), pattern.size)
}

// estimateExtent returns the maximum extent of the value of e (price.go).
func (x *estimator) estimateExtent(e ast.Expr) uint64 {
	switch e.Kind() {
	case ast.LiteralKind:
		return valueExtent(e.AsLiteral())
	case ast.ListKind, ast.MapKind:
		sum := uint64(1)
		for _, child := range operands(e) {
			sum += 1 + x.estimateExtent(child)
		}
		return sum
	}
	switch x.native.GetType(e.ID()).Kind() {
	case types.DynKind, types.StringKind, types.ListKind, types.MapKind:
	default:
		return 0
	}
	if e.Kind() == ast.CallKind {
		return x.estimateResult(e.AsCall())
	}
	if e.Kind() == ast.IdentKind && e.AsIdent() != varPayload && !isSubject(e.AsIdent()) {
		return MaxTool / bytesPerUnit // the other variables are names
	}
	return ordinary / bytesPerUnit
}

// estimateResult returns the extent of a call's result.
func (x *estimator) estimateResult(call ast.CallExpr) uint64 {
	args := call.Args()
	switch call.FunctionName() {
	case operators.Add:
		return x.estimateExtent(args[0]) + x.estimateExtent(args[1])
	case operators.Conditional:
		return max(x.estimateExtent(args[1]), x.estimateExtent(args[2]))
	}
	return ordinary / bytesPerUnit
}
