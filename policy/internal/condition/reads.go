package condition

import (
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// reads are the parts of the payload that an expression reads outside has().
type reads struct {
	paths    []Path // without duplicates, in order of appearance
	computed bool   // some name or index is not a literal
	now      bool
	subject  bool // a member of on_behalf_of
}

// collectReads returns the reads of e.
func collectReads(e ast.Expr) reads {
	var r reads
	r.collectFrom(e)
	return r
}

func (r *reads) collectFrom(e ast.Expr) {
	if p, rest, ok := payloadPath(e); ok {
		r.appendPath(p)
		for _, index := range rest {
			r.computed = true
			r.collectFrom(index)
		}
		return
	}
	switch e.Kind() {
	case ast.IdentKind:
		r.now = r.now || e.AsIdent() == varNow
		r.subject = r.subject || isSubject(e.AsIdent())
	case ast.SelectKind:
		if !e.AsSelect().IsTestOnly() {
			r.collectFrom(e.AsSelect().Operand())
		}
	default:
		for _, child := range operands(e) {
			r.collectFrom(child)
		}
	}
}

// isSubject reports whether a name is a variable of on_behalf_of. The type checker makes one name of its two parts.
func isSubject(name string) bool {
	return strings.HasPrefix(strings.TrimPrefix(name, "."), varBehalf+".")
}

func (r *reads) appendPath(p Path) {
	if len(p) == 0 {
		return
	}
	for _, known := range r.paths {
		if len(known) == len(p) && p.isWithin(known) {
			return
		}
	}
	r.paths = append(r.paths, p)
}

// readsOutside reports whether r reads a path that may be missing, because required does not
// contain it.
func (r *reads) readsOutside(required []Path) bool {
	if r.computed {
		return true
	}
	for _, p := range r.paths {
		if !isCoveredBy(p, required) {
			return true
		}
	}
	return false
}

// isCoveredBy reports whether p exists whenever all of required exist.
func isCoveredBy(p Path, required []Path) bool {
	for _, q := range required {
		if q.isWithin(p) {
			return true
		}
	}
	return false
}

// payloadPath returns the path of an expression that selects from the payload by literals. If the
// expression continues with computed names, the path ends there, and rest contains the expressions
// that compute them.
func payloadPath(e ast.Expr) (p Path, rest []ast.Expr, ok bool) {
	switch {
	case e.Kind() == ast.IdentKind && e.AsIdent() == varPayload:
		return Path{}, nil, true
	case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly():
		p, rest, ok = payloadPath(e.AsSelect().Operand())
		return extendPath(p, rest, types.String(e.AsSelect().FieldName())), rest, ok
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index:
		args := e.AsCall().Args()
		if p, rest, ok = payloadPath(args[0]); !ok {
			return nil, nil, false
		}
		if longer := extendPath(p, rest, literalValue(args[1])); longer != nil {
			return longer, rest, true
		}
		return p, append(rest, args[1]), true
	}
	return nil, nil, false
}

// extendPath returns p with one more step. It returns p itself if the path already ended, and nil
// if key cannot be a step.
func extendPath(p Path, ended []ast.Expr, key ref.Val) Path {
	if len(ended) > 0 && key != nil {
		return p
	}
	switch key := key.(type) {
	case types.String:
		return append(p[:len(p):len(p)], pathStep{name: string(key), place: -1})
	case types.Int:
		if key >= 0 && key < 1<<31 {
			return append(p[:len(p):len(p)], pathStep{place: int(key)})
		}
	}
	return nil
}

// literalValue returns the value of a literal, or nil for any other expression.
func literalValue(e ast.Expr) ref.Val {
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	return e.AsLiteral()
}

// operands returns the operands of e. Comprehensions and messages do not occur.
func operands(e ast.Expr) []ast.Expr {
	switch e.Kind() {
	case ast.CallKind:
		call := e.AsCall()
		if call.IsMemberFunction() {
			return append([]ast.Expr{call.Target()}, call.Args()...)
		}
		return call.Args()
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		var all []ast.Expr
		for _, entry := range e.AsMap().Entries() {
			all = append(all, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
		return all
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	}
	return nil
}

// walkExpressions calls visit with e and all expressions in it, parents first.
func walkExpressions(e ast.Expr, visit func(ast.Expr)) {
	visit(e)
	for _, child := range operands(e) {
		walkExpressions(child, visit)
	}
}
