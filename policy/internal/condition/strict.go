package condition

import (
	"iter"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Names of the functions that replace CEL's own (rewrite.go). No condition can contain them,
// because identifiers cannot contain an @.
const (
	strictAnd   = "@and"
	strictOr    = "@or"
	strictIf    = "@if"
	strictEqual = "@equal"
	strictOther = "@other"
	strictIn    = "@within"
	mapKey      = "@key" // around a computed name of a map member, which has a price
)

// strictFunctions differ from CEL's own functions in that no error of an operand is lost and values
// of different types cannot be compared. Both would let a condition be false where its result is
// unknown.
func strictFunctions() []cel.EnvOption {
	both := []*cel.Type{cel.BoolType, cel.BoolType}
	any2 := []*cel.Type{cel.DynType, cel.DynType}
	function := func(name string, args []*cel.Type, result *cel.Type, f cel.OverloadOpt) cel.EnvOption {
		return cel.Function(name, cel.Overload(name, args, result, f))
	}
	return []cel.EnvOption{
		function(strictAnd, both, cel.BoolType,
			cel.BinaryBinding(func(l, r ref.Val) ref.Val { return l.(types.Bool) && r.(types.Bool) })),
		function(strictOr, both, cel.BoolType,
			cel.BinaryBinding(func(l, r ref.Val) ref.Val { return l.(types.Bool) || r.(types.Bool) })),
		function(strictIf, []*cel.Type{cel.BoolType, cel.DynType, cel.DynType}, cel.DynType,
			cel.FunctionBinding(chooseBranch)),
		function(strictEqual, any2, cel.BoolType, cel.BinaryBinding(strictlyEqual)),
		function(strictOther, any2, cel.BoolType, cel.BinaryBinding(strictlyDifferent)),
		function(strictIn, any2, cel.BoolType, cel.BinaryBinding(containedIn)),
		function(mapKey, any2[:1], cel.DynType, cel.UnaryBinding(func(key ref.Val) ref.Val { return key })),
	}
}

func chooseBranch(args ...ref.Val) ref.Val {
	if args[0] == types.True {
		return args[1]
	}
	return args[2]
}

// haveEqualTypes reports whether l and r can be equal: they have one type, both are numbers, or one
// is null.
func haveEqualTypes(l, r ref.Val) bool {
	return l == types.NullValue || r == types.NullValue || isNumber(l) && isNumber(r) || l.Type() == r.Type()
}

func isNumber(v ref.Val) bool {
	switch v.(type) {
	case types.Double, types.Int, types.Uint, exactNumber:
		return true
	}
	return false
}

func strictlyEqual(l, r ref.Val) ref.Val {
	if !haveEqualTypes(l, r) {
		return typeMismatch(l, r)
	}
	return types.Bool(equalValues(l, r))
}

func strictlyDifferent(l, r ref.Val) ref.Val {
	same := strictlyEqual(l, r)
	if b, ok := same.(types.Bool); ok {
		return !b
	}
	return same
}

func typeMismatch(l, r ref.Val) ref.Val {
	return types.NewErr("%s is compared with %s", l.Type().TypeName(), r.Type().TypeName())
}

// containedIn implements the operator in. A list contains a value if an element is equal to it;
// otherwise an element of another type makes the result unknown.
func containedIn(v, container ref.Val) ref.Val {
	switch container := container.(type) {
	case *list:
		return containedInElements(v, slices.Values(container.elements))
	case traits.Mapper:
		if isExactNumber(v) { // maps look doubles up among integers, and cannot compare this one
			return types.NewErr("a number that a double cannot hold is no key")
		}
		return container.Contains(v)
	case traits.Lister:
		return containedInElements(v, listElements(container))
	}
	return types.NewErr("in needs a list or an object, not %s", container.Type().TypeName())
}

func containedInElements(v ref.Val, elements iter.Seq[ref.Val]) ref.Val {
	var answer ref.Val = types.False
	for element := range elements {
		if !haveEqualTypes(v, element) {
			answer = typeMismatch(v, element)
		} else if equalValues(v, element) {
			return types.True
		}
	}
	return answer
}

// listElements iterates over a list.
func listElements(l traits.Lister) iter.Seq[ref.Val] {
	return func(yield func(ref.Val) bool) {
		for it := l.Iterator(); it.HasNext() == types.True; {
			if !yield(it.Next()) {
				return
			}
		}
	}
}
