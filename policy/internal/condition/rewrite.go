package condition

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// rewriter makes a parsed condition strict, in place. It keeps the IDs, so the value of a
// sub-expression can be found by its position in the source.
//
//   - All operands of && and || are evaluated, in order, so an error is never hidden. An operand
//     that reads a path outside `requires` is skipped if the operands before it have decided, so
//     that a condition can check has() first.
//   - The same applies to the branches of ?:.
//   - ==, != and in do not compare values of different types.
//   - Computed names of map members are paid for.
type rewriter struct {
	required []Path
	make     ast.ExprFactory
	next     int64 // an unused ID
}

func (w *rewriter) rewriteExpression(e ast.Expr) {
	if e.Kind() == ast.CallKind {
		switch call := e.AsCall(); call.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			w.rewriteLogical(e)
			return
		case operators.Conditional:
			w.rewriteConditional(e)
			return
		case operators.Equals:
			w.renameFunction(e, strictEqual)
		case operators.NotEquals:
			w.renameFunction(e, strictOther)
		case operators.In:
			w.renameFunction(e, strictIn)
		}
	}
	for _, child := range operands(e) {
		w.rewriteExpression(child)
	}
	if e.Kind() == ast.MapKind {
		w.markKeys(e.AsMap())
	}
}

// markKeys wraps the computed keys of a map in calls, which have a price.
func (w *rewriter) markKeys(m ast.MapExpr) {
	for _, entry := range m.Entries() {
		key := entry.AsMapEntry().Key()
		if key.Kind() == ast.LiteralKind {
			continue
		}
		w.next++
		inner := w.make.CopyExpr(key)
		inner.RenumberIDs(func(old int64) int64 {
			if old == key.ID() {
				return w.next
			}
			return old
		})
		key.SetKindCase(w.make.NewCall(key.ID(), mapKey, inner))
	}
}

func (w *rewriter) renameFunction(e ast.Expr, name string) {
	e.SetKindCase(w.make.NewCall(e.ID(), name, e.AsCall().Args()...))
}

// rewriteLogical folds a chain of one operator from the left. The parser balances such chains; the
// IDs come from their inner nodes.
func (w *rewriter) rewriteLogical(e ast.Expr) {
	function := e.AsCall().FunctionName()
	operands, ids := flattenOperands(e, function, nil, nil)
	joined := operands[0]
	w.rewriteExpression(joined)
	for i, operand := range operands[1:] {
		seen := collectReads(operand)
		w.rewriteExpression(operand)
		id := ids[len(ids)-1-i] // the root's own is the last
		joined = w.joinOperands(id, function, joined, operand, seen.readsOutside(w.required))
	}
	e.SetKindCase(joined)
}

// joinOperands returns the call function(left, right). If lazily is set, right is skipped if left
// decides.
func (w *rewriter) joinOperands(id int64, function string, left, right ast.Expr, lazily bool) ast.Expr {
	switch {
	case lazily && function == operators.LogicalAnd:
		return w.make.NewCall(id, operators.Conditional, left, right, w.boolLiteral(types.False))
	case lazily:
		return w.make.NewCall(id, operators.Conditional, left, w.boolLiteral(types.True), right)
	case function == operators.LogicalAnd:
		return w.make.NewCall(id, strictAnd, left, right)
	}
	return w.make.NewCall(id, strictOr, left, right)
}

func (w *rewriter) boolLiteral(b types.Bool) ast.Expr {
	w.next++
	return w.make.NewLiteral(w.next, b)
}

func (w *rewriter) rewriteConditional(e ast.Expr) {
	args := e.AsCall().Args()
	yes, no := collectReads(args[1]), collectReads(args[2])
	for _, arg := range args {
		w.rewriteExpression(arg)
	}
	if !yes.readsOutside(w.required) && !no.readsOutside(w.required) {
		w.renameFunction(e, strictIf)
	}
}

// flattenOperands returns the operands of a chain of function and the IDs of its nodes, the root's
// first.
func flattenOperands(e ast.Expr, function string, operands []ast.Expr, ids []int64) ([]ast.Expr, []int64) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != function {
		return append(operands, e), ids
	}
	ids = append(ids, e.ID())
	for _, arg := range e.AsCall().Args() {
		operands, ids = flattenOperands(arg, function, operands, ids)
	}
	return operands, ids
}
