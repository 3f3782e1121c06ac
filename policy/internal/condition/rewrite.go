package condition

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// rewriter makes a parsed condition strict, in place. Ids stay, so that what a
// sub-expression came to can be told by its place in the source.
//
//   - The operands of && and || are evaluated in their order, and all of them:
//     an error is never hidden. An operand that reads what `requires` does not
//     name is skipped where those before it have decided, so that it may ask
//     has() first.
//   - Likewise the branches of ?:.
//   - ==, != and in do not compare values of different types.
//   - Computed names of a map's members are paid for.
type rewriter struct {
	required []Path
	make     ast.ExprFactory
	next     int64 // an id that is not taken
}

func (w *rewriter) rewrite(e ast.Expr) {
	if e.Kind() == ast.CallKind {
		switch call := e.AsCall(); call.FunctionName() {
		case operators.LogicalAnd, operators.LogicalOr:
			w.logical(e)
			return
		case operators.Conditional:
			w.conditional(e)
			return
		case operators.Equals:
			w.rename(e, strictEqual)
		case operators.NotEquals:
			w.rename(e, strictOther)
		case operators.In:
			w.rename(e, strictIn)
		}
	}
	for _, child := range children(e) {
		w.rewrite(child)
	}
	if e.Kind() == ast.MapKind {
		w.markKeys(e.AsMap())
	}
}

// markKeys puts the computed keys of a map into calls, which have a price.
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

func (w *rewriter) rename(e ast.Expr, name string) {
	e.SetKindCase(w.make.NewCall(e.ID(), name, e.AsCall().Args()...))
}

// logical folds a chain of one operator from the left. The parser balances such
// chains; their inner nodes give the ids.
func (w *rewriter) logical(e ast.Expr) {
	function := e.AsCall().FunctionName()
	operands, ids := flatten(e, function, nil, nil)
	joined := operands[0]
	w.rewrite(joined)
	for i, operand := range operands[1:] {
		seen := readsOf(operand)
		w.rewrite(operand)
		id := ids[len(ids)-1-i] // the root's own is the last
		joined = w.join(id, function, joined, operand, seen.outside(w.required))
	}
	e.SetKindCase(joined)
}

// join returns left function right; lazily, right is skipped when left decides.
func (w *rewriter) join(id int64, function string, left, right ast.Expr, lazily bool) ast.Expr {
	switch {
	case lazily && function == operators.LogicalAnd:
		return w.make.NewCall(id, operators.Conditional, left, right, w.constant(types.False))
	case lazily:
		return w.make.NewCall(id, operators.Conditional, left, w.constant(types.True), right)
	case function == operators.LogicalAnd:
		return w.make.NewCall(id, strictAnd, left, right)
	}
	return w.make.NewCall(id, strictOr, left, right)
}

func (w *rewriter) constant(b types.Bool) ast.Expr {
	w.next++
	return w.make.NewLiteral(w.next, b)
}

func (w *rewriter) conditional(e ast.Expr) {
	args := e.AsCall().Args()
	yes, no := readsOf(args[1]), readsOf(args[2])
	for _, arg := range args {
		w.rewrite(arg)
	}
	if !yes.outside(w.required) && !no.outside(w.required) {
		w.rename(e, strictIf)
	}
}

// flatten returns the operands of a chain of function and the ids of its nodes,
// the root's first.
func flatten(e ast.Expr, function string, operands []ast.Expr, ids []int64) ([]ast.Expr, []int64) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != function {
		return append(operands, e), ids
	}
	ids = append(ids, e.ID())
	for _, arg := range e.AsCall().Args() {
		operands, ids = flatten(arg, function, operands, ids)
	}
	return operands, ids
}
