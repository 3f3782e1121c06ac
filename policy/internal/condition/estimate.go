package condition

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// ordinary is how long the texts, arrays and objects of a payload are taken to be when a
// condition is saved, in bytes.
const ordinary = 4096

// estimator tells what a condition costs at the most of an ordinary payload.
type estimator struct {
	native   *ast.AST
	patterns *patterns
	failed   error // of the first pattern that can't be compiled
}

// checkEstimate refuses a condition that would cost too much, or that has a pattern which does not
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

// estimatePrice is the price of e but for its node and its operands.
func (x *estimator) estimatePrice(e ast.Expr) uint64 {
	if e.Kind() != ast.CallKind {
		return 0
	}
	operands := operandsOf(e)
	if name := e.AsCall().FunctionName(); name == "matches" {
		return x.estimateMatch(e.AsCall(), operands[0])
	} else if price := pricerOfFunction(name); price != nil && len(operands) > 0 {
		return price(x.estimateExtent(operands[0]), x.estimateExtent(operands[len(operands)-1]))
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
	return priceOfMatch(int(x.estimateExtent(text)*bytesPerUnit), pattern.size)
}

// estimateExtent is the most that the value of e takes to look at (price.go).
func (x *estimator) estimateExtent(e ast.Expr) uint64 {
	switch e.Kind() {
	case ast.LiteralKind:
		return extentOfValue(e.AsLiteral())
	case ast.ListKind, ast.MapKind:
		sum := uint64(1)
		for _, child := range operandsOf(e) {
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
	if e.Kind() == ast.IdentKind && e.AsIdent() != varPayload {
		return MaxTool / bytesPerUnit // the other variables are names
	}
	return ordinary / bytesPerUnit
}

// estimateResult is the extent of a call's result.
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
