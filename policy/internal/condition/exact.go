package condition

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/agentledger/agentledger/decimal"
	"github.com/agentledger/agentledger/internal/jcs"
)

// exactNumber is a number of a tagged payload that no double can hold. For conditions it is a double
// that is compared exactly. Arithmetic with it is an error, because the result would be rounded;
// decimal(x) is exact.
type exactNumber struct{ jcs.Number }

// decodeExactNumber returns a number literal as an exactNumber, or as a double if that is the same
// value.
func decodeExactNumber(literal []byte) ref.Val {
	n, ok := jcs.ParseNumber(string(literal))
	if !ok {
		return types.NewErr("the payload is not JSON")
	}
	if n.IsPlain() {
		double, _ := strconv.ParseFloat(string(literal), 64) // plain numbers are in the range of doubles
		return types.Double(double)
	}
	return exactNumber{n}
}

// toDecimal returns the number as a decimal.
func (n exactNumber) toDecimal() (decimal.Decimal, error) {
	text := n.String()
	if strings.Contains(text, "e") { // more digits than a decimal has, before the point or after it
		return decimal.Decimal{}, decimal.ErrRange
	}
	return decimal.Parse(text)
}

// compareExactly returns the order of two numbers that CEL would not compare by their values, because
// one of them is an exactNumber, or because one is a double and the other an integer that no double
// holds. ok is false for all other values, and if one of the numbers is not finite.
func compareExactly(l, r ref.Val) (order int, ok bool) {
	if !isExactNumber(l) && !isExactNumber(r) && !(isDouble(l) && isLargeInteger(r)) && !(isDouble(r) && isLargeInteger(l)) {
		return 0, false
	}
	left, ok := exactValue(l)
	right, ok2 := exactValue(r)
	return left.Compare(right), ok && ok2
}

// maxDoubleInteger is the integer up to which doubles hold all integers.
const maxDoubleInteger = 1 << 53

func isLargeInteger(v ref.Val) bool {
	switch v := v.(type) {
	case types.Int:
		return v > maxDoubleInteger || v < -maxDoubleInteger
	case types.Uint:
		return v > maxDoubleInteger
	}
	return false
}

func isDouble(v ref.Val) bool {
	_, ok := v.(types.Double)
	return ok
}

// exactValue returns the value of a number; the value of a double is its shortest literal.
func exactValue(v ref.Val) (jcs.Number, bool) {
	switch v := v.(type) {
	case exactNumber:
		return v.Number, true
	case types.Int:
		return jcs.ParseNumber(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		return jcs.ParseNumber(strconv.FormatUint(uint64(v), 10))
	case types.Double:
		return jcs.ParseNumber(strconv.FormatFloat(float64(v), 'e', -1, 64))
	}
	return jcs.Number{}, false
}

func isExactNumber(v ref.Val) bool {
	_, ok := v.(exactNumber)
	return ok
}

// applyExactly evaluates a comparison by compareExactly, and the conversion of a large double to an
// integer, which is that of its shortest literal. It returns nil for any other call.
func applyExactly(function string, l, r ref.Val) ref.Val {
	switch function {
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
	case "int", "uint":
		return convertLargeDouble(function, l)
	default:
		return nil
	}
	order, ok := compareExactly(l, r)
	switch {
	case !ok:
		return nil
	case function == operators.Less:
		return types.Bool(order < 0)
	case function == operators.LessEquals:
		return types.Bool(order <= 0)
	case function == operators.Greater:
		return types.Bool(order > 0)
	}
	return types.Bool(order >= 0)
}

func convertLargeDouble(function string, v ref.Val) ref.Val {
	if d, ok := v.(types.Double); !ok || d <= maxDoubleInteger && d >= -maxDoubleInteger {
		return nil
	}
	n, ok := exactValue(v)
	if !ok {
		return nil
	}
	if function == "int" {
		return exactNumber{n}.truncate(types.IntType)
	}
	return exactNumber{n}.truncate(types.UintType)
}

var errArithmetic = types.NewErr("arithmetic with a number that a double cannot hold; decimal(x) is exact")

// Add implements traits.Adder, as do the following methods for their traits, because the type double
// has these traits.
func (n exactNumber) Add(ref.Val) ref.Val { return errArithmetic }

func (n exactNumber) Subtract(ref.Val) ref.Val { return errArithmetic }

func (n exactNumber) Multiply(ref.Val) ref.Val { return errArithmetic }

func (n exactNumber) Divide(ref.Val) ref.Val { return errArithmetic }

func (n exactNumber) Negate() ref.Val { return errArithmetic }

// Compare implements traits.Comparer. Comparisons with numbers do not reach it, see applyExactly.
func (n exactNumber) Compare(other ref.Val) ref.Val { return types.MaybeNoSuchOverloadErr(other) }

// Equal implements ref.Val.
func (n exactNumber) Equal(other ref.Val) ref.Val {
	order, ok := compareExactly(n, other)
	return types.Bool(ok && order == 0)
}

// ConvertToNative implements ref.Val.
func (n exactNumber) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("policy: no conversion of an exact number to %v", t)
}

// ConvertToType implements ref.Val. A conversion to double keeps the exact value.
func (n exactNumber) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.DoubleType:
		return n
	case types.StringType:
		return types.String(n.String())
	case types.TypeType:
		return types.DoubleType
	case types.IntType, types.UintType:
		return n.truncate(t)
	}
	return types.NewErr("no conversion of a number to %s", t.TypeName())
}

// truncate returns the number without its fraction, as CEL converts doubles.
func (n exactNumber) truncate(t ref.Type) ref.Val {
	text := n.String()
	if strings.Contains(text, "e-") {
		text = "0"
	}
	if whole, _, _ := strings.Cut(text, "."); !strings.Contains(text, "e") {
		if t == types.IntType {
			if v, err := strconv.ParseInt(whole, 10, 64); err == nil {
				return types.Int(v)
			}
		} else if v, err := strconv.ParseUint(whole, 10, 64); err == nil {
			return types.Uint(v)
		}
	}
	return types.NewErr("integer overflow")
}

// Type implements ref.Val.
func (n exactNumber) Type() ref.Type { return types.DoubleType }

// Value implements ref.Val.
func (n exactNumber) Value() any { return n.String() }
