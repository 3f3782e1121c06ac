package decimal_test

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/decimal"
)

var scale = new(big.Int).Exp(big.NewInt(10), big.NewInt(decimal.FractionDigits), nil)

// exact is the oracle: the value as an exact fraction.
func exact(t testing.TB, s string) *big.Rat {
	t.Helper()
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		t.Fatalf("%q is not a number", s)
	}
	return r
}

func parse(t testing.TB, s string) decimal.Decimal {
	t.Helper()
	d, err := decimal.Parse(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return d
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "00": "0", "0.0": "0", "1": "1", "-1": "-1", "007": "7",
		"0.1": "0.1", "-0.10": "-0.1", "1.000000000000000001": "1.000000000000000001",
		"99999999999999999999.999999999999999999":  "99999999999999999999.999999999999999999",
		"-99999999999999999999.999999999999999999": "-99999999999999999999.999999999999999999",
		"18446744073709551616":                     "18446744073709551616",
		"12.5000000000000000000000000000":          "12.5",
		"9223372036854775807.999999999999999999":   "9223372036854775807.999999999999999999",
	} {
		if got := parse(t, in).String(); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{"", "-", ".", "1.", ".1", "+1", "1e3", "1,5", " 1", "1 ", "--1", "0x1", "1.2.3", "١", "NaN"} {
		if d, err := decimal.Parse(in); !errors.Is(err, decimal.ErrSyntax) {
			t.Errorf("%q: got %s, %v", in, d, err)
		}
	}
	for _, in := range []string{"100000000000000000000", "-100000000000000000000", "0.0000000000000000001", "1" + strings.Repeat("0", 400)} {
		if d, err := decimal.Parse(in); !errors.Is(err, decimal.ErrRange) {
			t.Errorf("%q: got %s, %v", in, d, err)
		}
	}
}

func TestFromFloat(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 0.1: "0.1", 1e19: "10000000000000000000", -2.5: "-2.5", 1e-18: "0.000000000000000001",
		9007199254740993: "9007199254740992", 0.30000000000000004: "0.30000000000000004", math.Copysign(0, -1): "0",
	} {
		if got, err := decimal.FromFloat(f); err != nil || got.String() != want {
			t.Errorf("%v: got %s, %v, want %s", f, got, err, want)
		}
	}
	for _, f := range []float64{math.Inf(1), math.Inf(-1), math.NaN(), 1e20, -1e20, 1e-19, math.MaxFloat64, 5e-324} {
		if got, err := decimal.FromFloat(f); !errors.Is(err, decimal.ErrRange) {
			t.Errorf("%v: got %s, %v, want ErrRange", f, got, err)
		}
	}
}

func TestFromInt(t *testing.T) {
	for _, n := range []int64{0, 1, -1, 42, math.MaxInt64, math.MinInt64} {
		if got, want := decimal.FromInt(n).String(), big.NewInt(n).String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Sums, differences and comparisons agree with exact fractions, and an operation fails exactly if
// its result does not fit.
func FuzzArithmetic(f *testing.F) {
	for _, a := range []string{"0", "0.1", "-0.2", "99999999999999999999.999999999999999999", "-99999999999999999999", "18446744073709551616.5"} {
		f.Add(a, "0.000000000000000001")
		f.Add(a, "-99999999999999999999.999999999999999999")
	}
	most := new(big.Rat).SetFrac(new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil), big.NewInt(1)), scale)
	f.Fuzz(func(t *testing.T, a, b string) {
		x, err := decimal.Parse(a)
		if err != nil {
			return
		}
		y, err := decimal.Parse(b)
		if err != nil {
			return
		}
		p, q := exact(t, a), exact(t, b)
		if got := exact(t, x.String()); got.Cmp(p) != 0 || parse(t, x.String()) != x {
			t.Fatalf("%q is parsed as %s", a, x)
		}
		if got, want := x.Cmp(y), p.Cmp(q); got != want || x.Sign() != p.Sign() {
			t.Fatalf("%s against %s: got %d, want %d", x, y, got, want)
		}
		for name, op := range map[string]struct {
			got  func(decimal.Decimal) (decimal.Decimal, error)
			want *big.Rat
		}{
			"+": {x.Add, new(big.Rat).Add(p, q)}, "-": {x.Sub, new(big.Rat).Sub(p, q)},
		} {
			got, err := op.got(y)
			fits := new(big.Rat).Abs(op.want).Cmp(most) <= 0
			if (err == nil) != fits || err == nil && exact(t, got.String()).Cmp(op.want) != 0 {
				t.Fatalf("%s %s %s: got %s, %v, want %s", x, name, y, got, err, op.want)
			}
		}
	})
}
