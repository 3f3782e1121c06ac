package condition

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Units for the operands of a function.
const (
	bytesPerUnit        = 16 // of text, and of the JSON of arrays and objects
	scalarsPerUnit      = 2  // elements of an array
	unitsPerContainer   = 4  // per element that is an array or object
	instructionsPerUnit = 16 // steps of a pattern: one for each pair of a byte of the text and an instruction
	unitsPerDecimal     = 20
	unitsPerTime        = 4
)

// pricer returns what a call costs in addition to its node, given the extents of its first two
// arguments.
type pricer func(l, r uint64) uint64

// pricerFor returns the pricer of a function's calls, or nil if their price does not depend on
// their arguments. It knows the functions that conditions may use and their replacements
// (strict.go).
func pricerFor(function string) pricer {
	switch function {
	case strictEqual, strictOther, operators.Equals, operators.NotEquals,
		operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return func(l, r uint64) uint64 { return min(l, r) }
	case strictIn, operators.In, operators.Add, "contains":
		return func(l, r uint64) uint64 { return l + r }
	case "startsWith", "endsWith":
		return func(_, r uint64) uint64 { return r }
	case "size", mapKey:
		return func(l, _ uint64) uint64 { return l }
	case "decimal":
		return constantPrice(unitsPerDecimal)
	case "timestamp", "duration", "string", "double", "int", "uint",
		"getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear",
		"getHours", "getMinutes", "getSeconds", "getMilliseconds":
		return constantPrice(unitsPerTime)
	}
	return nil
}

func constantPrice(units uint64) pricer { return func(_, _ uint64) uint64 { return units } }

// matchPrice returns the price of matching a text of the given number of bytes against a pattern of
// the given number of instructions.
func matchPrice(text, instructions int) uint64 {
	return (uint64(text) + 1) * uint64(instructions) / instructionsPerUnit
}

// valueExtent returns the price, in units, of reading all of v. It takes no longer than reading v,
// and stops at the maximum that a condition may spend.
func valueExtent(v ref.Val) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / bytesPerUnit
	case *Object:
		return uint64(len(v.raw)) / bytesPerUnit
	case *list:
		return v.extent
	case traits.Lister: // a literal, at most as long as the source
		sum := uint64(1)
		for it := v.Iterator(); sum <= MaxCost && it.HasNext() == types.True; {
			sum += 1 + valueExtent(it.Next())
		}
		return sum
	case traits.Mapper:
		sum := uint64(1)
		for it := v.Iterator(); sum <= MaxCost && it.HasNext() == types.True; {
			key := it.Next()
			sum += 2 + valueExtent(key) + valueExtent(v.Get(key))
		}
		return sum
	}
	return 0
}
