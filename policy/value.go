package policy

import (
	"bytes"
	"fmt"
	"reflect"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/agentledger/agentledger/internal/jcs"
)

// celValue returns a canonical JSON value as CEL sees it: numbers are doubles,
// objects and arrays are read when they are looked into.
func celValue(raw []byte) ref.Val {
	if len(raw) == 0 {
		return types.NewErr("the payload is not JSON")
	}
	switch raw[0] {
	case '"':
		text, _ := jcs.AppendDecoded(nil, raw)
		return types.String(text)
	case '{':
		return &object{raw: raw}
	case '[':
		return newList(raw)
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return types.NewErr("the payload is not JSON")
	}
	return types.Double(number)
}

// list is an array of the payload.
type list struct {
	traits.Lister
	raw []byte
}

func newList(raw []byte) *list {
	var elements []ref.Val
	eachElement(raw, func(value []byte) { elements = append(elements, celValue(value)) })
	return &list{types.NewRefValList(types.DefaultTypeAdapter, elements), raw}
}

// Equal compares arrays of the payload by their canonical text.
func (l *list) Equal(other ref.Val) ref.Val {
	if o, ok := other.(*list); ok {
		return types.Bool(bytes.Equal(l.raw, o.raw))
	}
	return l.Lister.Equal(other)
}

// object is an object of the payload, a CEL map. Its members are found at the
// first look and each one's value is made once, by the one goroutine that
// evaluates.
type object struct {
	raw     []byte
	members []member
	byName  map[string]int // places in members, when there are many
}

type member struct {
	name  []byte // decoded
	raw   []byte
	value ref.Val // nil until it is asked for
}

// There is room for fewMembers before the list of members grows, and up to
// manyMembers are looked through one by one.
const (
	fewMembers  = 8
	manyMembers = 16
)

func (o *object) load() {
	if o.members != nil || len(o.raw) <= len("{}") {
		return
	}
	o.members = make([]member, 0, fewMembers)
	eachMember(o.raw, func(name, value []byte) {
		o.members = append(o.members, member{name: name, raw: value})
	})
	if len(o.members) > manyMembers {
		o.byName = make(map[string]int, len(o.members))
		for i := range o.members {
			o.byName[string(o.members[i].name)] = i
		}
	}
}

// lookup returns the value of a member, nil when there is none.
func (o *object) lookup(name string) ref.Val {
	o.load()
	if o.byName != nil {
		if i, ok := o.byName[name]; ok {
			return o.members[i].get()
		}
		return nil
	}
	for i := range o.members {
		if string(o.members[i].name) == name {
			return o.members[i].get()
		}
	}
	return nil
}

func (m *member) get() ref.Val {
	if m.value == nil {
		m.value = celValue(m.raw)
	}
	return m.value
}

// Find implements traits.Mapper.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	v := o.lookup(string(name))
	return v, v != nil
}

// Get implements traits.Indexer.
func (o *object) Get(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if found || v != nil {
		return v
	}
	return types.NewErr("no such key: %v", key)
}

// Contains implements traits.Container.
func (o *object) Contains(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if !found && v != nil {
		return v
	}
	return types.Bool(found)
}

// Size implements traits.Sizer.
func (o *object) Size() ref.Val {
	o.load()
	return types.Int(len(o.members))
}

// Iterator implements traits.Iterable, over the names.
func (o *object) Iterator() traits.Iterator { return o.whole().Iterator() }

// whole returns the object as one of CEL's own maps.
func (o *object) whole() traits.Mapper {
	o.load()
	m := make(map[string]any, len(o.members))
	for i := range o.members {
		m[string(o.members[i].name)] = o.members[i].get()
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, m)
}

// Equal implements ref.Val. Objects of the payload are compared by their
// canonical text.
func (o *object) Equal(other ref.Val) ref.Val {
	if p, ok := other.(*object); ok {
		return types.Bool(bytes.Equal(o.raw, p.raw))
	}
	return o.whole().Equal(other)
}

// ConvertToNative implements ref.Val.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("policy: no conversion of a payload to %v", t)
}

// ConvertToType implements ref.Val.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("no conversion of a payload to %s", t.TypeName())
}

// Type implements ref.Val.
func (o *object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *object) Value() any { return o.raw }

// weight is what it costs to look at all of v, in bytes.
func weight(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v))
	case *object:
		return uint64(len(v.raw))
	case *list:
		return uint64(len(v.raw))
	case traits.Lister: // a literal, as long as the source at most, or joined ones
		sum := uint64(1)
		for it := v.Iterator(); it.HasNext() == types.True; {
			sum += weight(it.Next())
		}
		return sum
	case traits.Mapper:
		sum := uint64(1)
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			sum += weight(key) + weight(v.Get(key))
		}
		return sum
	}
	return 1
}
