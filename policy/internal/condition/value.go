package condition

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

// decodeValue returns a canonical JSON value as a CEL value: numbers are doubles, or exact numbers in a
// tagged payload, and objects are decoded when a member is looked up. p, which may be nil, pays for decoding, level by level. If p
// cannot pay, the value is an error that is not cached.
func decodeValue(raw []byte, p *purse) ref.Val {
	if len(raw) == 0 {
		return types.NewErr("the payload is not JSON")
	}
	switch raw[0] {
	case '"':
		if !p.chargeReading(len(raw) / bytesPerUnit) {
			return types.WrapErr(ErrTooExpensive)
		}
		text, _ := jcs.AppendDecoded(nil, raw)
		return types.String(text)
	case '{':
		return &Object{raw: raw, purse: p}
	case '[':
		return decodeList(raw, p)
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	}
	if p != nil && p.exact && (len(raw) > shortNumber || bytes.IndexByte(raw, 'e') >= 0) {
		return decodeExactNumber(raw)
	}
	number, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return types.NewErr("the payload is not JSON")
	}
	return types.Double(number)
}

// shortNumber is the number of bytes up to which a literal without an exponent has no more digits
// than every double preserves.
const shortNumber = 15

// list is an array of the payload, or a concatenation of several.
type list struct {
	traits.Lister
	elements []ref.Val // the elements of Lister
	extent   uint64    // price of reading the whole value (price.go)
	raw      []byte    // nil if concatenated
}

func decodeList(raw []byte, p *purse) ref.Val {
	if !p.chargeReading(len(raw) / bytesPerUnit) {
		return types.WrapErr(ErrTooExpensive)
	}
	var elements []ref.Val
	units := 0
	forEachElement(raw, func(value []byte) bool {
		elements = append(elements, decodeValue(value, p))
		if value[0] == '{' || value[0] == '[' {
			units += unitsPerContainer
			return p.chargeReading(1)
		}
		if len(elements)%scalarsPerUnit == 0 {
			units++
			return p.chargeReading(1)
		}
		return true
	})
	if p != nil && p.refused {
		return types.WrapErr(ErrTooExpensive)
	}
	extent := uint64(len(raw)/bytesPerUnit + units)
	return &list{types.NewRefValList(types.DefaultTypeAdapter, elements), elements, extent, raw}
}

// concatenateLists returns one list of the elements of l and r, because CEL's own would be read
// once for each concatenated list. The caller has paid for both.
func concatenateLists(l, r traits.Lister) *list {
	elements := make([]ref.Val, 0, int(l.Size().(types.Int)+r.Size().(types.Int)))
	for _, side := range []traits.Lister{l, r} {
		for it := side.Iterator(); it.HasNext() == types.True; {
			elements = append(elements, it.Next())
		}
	}
	return &list{types.NewRefValList(types.DefaultTypeAdapter, elements), elements,
		valueExtent(l) + valueExtent(r), nil}
}

// Equal implements ref.Val.
func (l *list) Equal(other ref.Val) ref.Val { return types.Bool(equalValues(l, other)) }

// Object is an object of the payload, a CEL map. It finds its members on first access and decodes
// each value once. It is not safe for concurrent use.
type Object struct {
	raw     []byte
	purse   *purse // pays for reading; may be nil
	members []member
	byName  map[string]int // indices into members, if there are many
}

type member struct {
	name  []byte // decoded
	raw   []byte
	value ref.Val // nil until it is needed
}

// fewMembers is the initial capacity of the list of members. Up to manyMembers are searched
// linearly.
const (
	fewMembers  = 8
	manyMembers = 16
)

// loadMembers decodes the members, if they can be paid for.
func (o *Object) loadMembers() {
	if o.members != nil || len(o.raw) <= len("{}") || !o.purse.chargeReading(1+len(o.raw)/bytesPerUnit) {
		return
	}
	o.members = make([]member, 0, fewMembers)
	forEachMember(o.raw, func(name, value []byte) {
		o.members = append(o.members, member{name: name, raw: value})
	})
	o.purse.chargeReading(len(o.members) / scalarsPerUnit)
	if len(o.members) > manyMembers {
		o.byName = make(map[string]int, len(o.members))
		for i := range o.members {
			o.byName[string(o.members[i].name)] = i
		}
	}
}

// LookUp returns the value of a member, or nil if there is none.
func (o *Object) LookUp(name string) ref.Val {
	o.loadMembers()
	if o.byName != nil {
		if i, ok := o.byName[name]; ok {
			return o.members[i].decodeMember(o.purse)
		}
		return nil
	}
	for i := range o.members {
		if string(o.members[i].name) == name {
			return o.members[i].decodeMember(o.purse)
		}
	}
	return nil
}

func (m *member) decodeMember(p *purse) ref.Val {
	if m.value != nil {
		return m.value
	}
	v := decodeValue(m.raw, p)
	if p == nil || !p.refused {
		m.value = v
	}
	return v
}

// Find implements traits.Mapper.
func (o *Object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	if !o.purse.chargeUnits(uint64(len(name)) / bytesPerUnit) { // of a computed name
		return types.WrapErr(ErrTooExpensive), false
	}
	v := o.LookUp(string(name))
	return v, v != nil
}

// Get implements traits.Indexer.
func (o *Object) Get(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if found || v != nil {
		return v
	}
	return types.NewErr("no such key")
}

// Contains implements traits.Container.
func (o *Object) Contains(key ref.Val) ref.Val {
	v, found := o.Find(key)
	if !found && v != nil {
		return v
	}
	return types.Bool(found)
}

// Size implements traits.Sizer.
func (o *Object) Size() ref.Val {
	o.loadMembers()
	return types.Int(len(o.members))
}

// Iterator implements traits.Iterable, over the names.
func (o *Object) Iterator() traits.Iterator { return o.decodeWhole().Iterator() }

// decodeWhole returns the object as a map of CEL's own.
func (o *Object) decodeWhole() traits.Mapper {
	o.loadMembers()
	m := make(map[string]any, len(o.members))
	for i := range o.members {
		m[string(o.members[i].name)] = o.members[i].decodeMember(o.purse)
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, m)
}

// Equal implements ref.Val.
func (o *Object) Equal(other ref.Val) ref.Val { return types.Bool(equalValues(o, other)) }

// ConvertToNative implements ref.Val.
func (o *Object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("policy: no conversion of a payload to %v", t)
}

// ConvertToType implements ref.Val.
func (o *Object) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.MapType:
		return o
	case types.TypeType:
		return types.MapType
	}
	return types.NewErr("no conversion of a payload to %s", t.TypeName())
}

// Type implements ref.Val.
func (o *Object) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *Object) Value() any { return o.raw }
