package condition

import (
	"bytes"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// equalValues reports whether two values are equal in the sense of CEL. It compares in a fixed
// order, because each comparison is paid for.
func equalValues(l, r ref.Val) bool {
	if l == types.NullValue || r == types.NullValue {
		return l == r
	}
	if order, ok := compareExactly(l, r); ok {
		return order == 0
	}
	switch left := l.(type) {
	case traits.Mapper:
		right, ok := r.(traits.Mapper)
		return ok && equalMaps(left, right)
	case traits.Lister:
		right, ok := r.(traits.Lister)
		return ok && equalLists(left, right)
	}
	return l.Equal(r) == types.True
}

// equalLists compares arrays of the payload by their canonical text.
func equalLists(l, r traits.Lister) bool {
	left, ok := l.(*list)
	right, ok2 := r.(*list)
	if ok && ok2 && left.raw != nil && right.raw != nil {
		return bytes.Equal(left.raw, right.raw)
	}
	n := l.Size().(types.Int)
	if n != r.Size().(types.Int) {
		return false
	}
	for i := types.Int(0); i < n; i++ {
		if !equalValues(l.Get(i), r.Get(i)) {
			return false
		}
	}
	return true
}

// equalMaps compares objects of the payload by their canonical text, and otherwise by the members
// of the one that is an object of the payload.
func equalMaps(l, r traits.Mapper) bool {
	left, ok := l.(*Object)
	right, ok2 := r.(*Object)
	switch {
	case ok && ok2:
		return bytes.Equal(left.raw, right.raw)
	case ok:
		return left.equalsMap(r)
	case ok2:
		return right.equalsMap(l)
	case l.Size() != r.Size():
		return false
	}
	equal := true
	for it := l.Iterator(); it.HasNext() == types.True; { // in any order; every element counts
		key := it.Next()
		v, found := r.Find(key)
		equal = found && equalValues(l.Get(key), v) && equal
	}
	return equal
}

// equalsMap compares o with a map of the condition.
func (o *Object) equalsMap(m traits.Mapper) bool {
	if o.Size() != m.Size() {
		return false
	}
	for i := range o.members {
		v, found := m.Find(types.String(o.members[i].name))
		if !found || !equalValues(o.members[i].decodeMember(o.purse), v) {
			return false
		}
	}
	return true
}
