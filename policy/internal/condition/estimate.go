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

// check refuses a condition that would cost too much, or that has a pattern which does not
// compile within the bounds of the policy.
func (x *estimator) check() error {
	var units uint64
	walk(x.native.Expr(), func(e ast.Expr) { units += 1 + x.price(e) })
	if x.failed != nil {
		return x.failed
	}
	if units > MaxCost {
		return fmt.Errorf("costs too much: up to %d units with texts of %d bytes, more than %d", units, ordinary, MaxCost)
	}
	return nil
}

// price is the price of e but for its node and its operands.
func (x *estimator) price(e ast.Expr) uint64 {
	if e.Kind() != ast.CallKind {
		return 0
	}
	operands := children(e)
	if name := e.AsCall().FunctionName(); name == "matches" {
		return x.match(e.AsCall(), operands[0])
	} else if price := priceOf(name); price != nil && len(operands) > 0 {
		return price(x.extent(operands[0]), x.extent(operands[len(operands)-1]))
	}
	return 0
}

func (x *estimator) match(call ast.CallExpr, text ast.Expr) uint64 {
	if x.failed != nil {
		return 0
	}
	pattern, err := x.patterns.compile(patternOf(call))
	if err != nil {
		x.failed = err
		return 0
	}
	return matchPrice(int(x.extent(text)*bytesPerUnit), pattern.size)
}

// extent is the most that the value of e takes to look at (price.go).
func (x *estimator) extent(e ast.Expr) uint64 {
	switch e.Kind() {
	case ast.LiteralKind:
		return extent(e.AsLiteral())
	case ast.ListKind, ast.MapKind:
		sum := uint64(1)
		for _, child := range children(e) {
			sum += 1 + x.extent(child)
		}
		return sum
	}
	switch x.native.GetType(e.ID()).Kind() {
	case types.DynKind, types.StringKind, types.ListKind, types.MapKind:
	default:
		return 0
	}
	if e.Kind() == ast.CallKind {
		return x.result(e.AsCall())
	}
	if e.Kind() == ast.IdentKind && e.AsIdent() != varPayload {
		return MaxTool / bytesPerUnit // the other variables are names
	}
	return ordinary / bytesPerUnit
}

// result is the extent of what a call returns.
func (x *estimator) result(call ast.CallExpr) uint64 {
	args := call.Args()
	switch call.FunctionName() {
	case operators.Add:
		return x.extent(args[0]) + x.extent(args[1])
	case operators.Conditional:
		return max(x.extent(args[1]), x.extent(args[2]))
	}
	return ordinary / bytesPerUnit
}
