package condition

import (
	"fmt"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/agentledger/agentledger/decimal"
)

// amountType is the CEL type of exact decimals.
var amountType = cel.ObjectType("decimal", traits.ComparerType|traits.AdderType|traits.SubtractorType)

// amount is a decimal in CEL. It can be compared with, added to and subtracted from other decimals
// only.
type amount struct{ decimal.Decimal }

// convertToAmount implements the function decimal(x).
func convertToAmount(v ref.Val) ref.Val {
	d, err := DecimalOf(v)
	if err != nil {
		return types.WrapErr(err)
	}
	return amount{d}
}

// DecimalOf converts a number or a digit string.
func DecimalOf(v ref.Val) (decimal.Decimal, error) {
	switch v := v.(type) {
	case types.Double:
		return decimal.FromFloat(float64(v))
	case types.String:
		if len(v) > MaxConverted {
			return decimal.Decimal{}, decimal.ErrSyntax
		}
		return decimal.Parse(string(v))
	case types.Int:
		return decimal.FromInt(int64(v)), nil
	case exactNumber:
		return v.toDecimal()
	case amount:
		return v.Decimal, nil
	}
	return decimal.Decimal{}, decimal.ErrSyntax
}

// Add implements traits.Adder.
func (a amount) Add(other ref.Val) ref.Val { return a.combineAmounts(other, decimal.Decimal.Add) }

// Subtract implements traits.Subtractor.
func (a amount) Subtract(other ref.Val) ref.Val { return a.combineAmounts(other, decimal.Decimal.Sub) }

func (a amount) combineAmounts(other ref.Val, op func(d, e decimal.Decimal) (decimal.Decimal, error)) ref.Val {
	b, ok := other.(amount)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	d, err := op(a.Decimal, b.Decimal)
	if err != nil {
		return types.WrapErr(err)
	}
	return amount{d}
}

// Compare implements traits.Comparer.
func (a amount) Compare(other ref.Val) ref.Val {
	b, ok := other.(amount)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return types.Int(a.Cmp(b.Decimal))
}

// Equal implements ref.Val.
func (a amount) Equal(other ref.Val) ref.Val { return types.Bool(ref.Val(a) == other) }

// ConvertToNative implements ref.Val.
func (a amount) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("policy: no conversion of a decimal to %v", t)
}

// ConvertToType implements ref.Val.
func (a amount) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.StringType:
		return types.String(a.String())
	case types.TypeType:
		return amountType
	case amountType:
		return a
	}
	return types.NewErr("no conversion of a decimal to %s", t.TypeName())
}

// Type implements ref.Val.
func (a amount) Type() ref.Type { return amountType }

// Value implements ref.Val.
func (a amount) Value() any { return a.Decimal }

// ParseDecimal parses canonical JSON: a number or a string of digits.
func ParseDecimal(canonical []byte) (decimal.Decimal, error) {
	return DecimalOf(decodeValue(canonical, nil))
}
