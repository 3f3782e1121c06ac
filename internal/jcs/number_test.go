package jcs

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
)

// RFC 8785, appendix B, with -0 and the largest and smallest doubles.
func TestAppendDouble(t *testing.T) {
	for bits, want := range map[uint64]string{
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		v := math.Float64frombits(bits)
		if got := string(appendDouble(nil, v)); got != want {
			t.Errorf("%016x: got %s, want %s", bits, got, want)
		}
		if got, err := Canonicalize([]byte(want), 1); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want it unchanged", want, got, err)
		}
	}
}

var numbers = []struct{ name, in, want string }{ // if want is "", the number is rejected
	{"zero", "0", "0"},
	{"minus zero", "-0", "0"},
	{"minus zero with fraction", "-0.0", "0"},
	{"minus zero with exponent", "-0e5", "0"},
	{"zero with many zeros", "0." + strings.Repeat("0", 400), "0"},
	{"zero with a huge exponent", "0e999999999999999999999999", "0"},
	{"zero with a huge negative exponent", "0.0E-999999999999999999999999", "0"},
	{"one", "1", "1"},
	{"one with fraction", "1.0", "1"},
	{"tenth with exponent", "0.1e1", "1"},
	{"capital exponent", "1E2", "100"},
	{"signed exponent", "1e+2", "100"},
	{"exponent with zeros", "1e-0000000000000000000000000000001", "0.1"},
	{"trailing zero", "2.50", "2.5"},
	{"15 digits", "123456789012345", "123456789012345"},
	{"15 digits in fraction", "0.12345678901234", "0.12345678901234"},
	{"-15 digits", "-999999999999999", "-999999999999999"},
	{"2^53-1", "9007199254740991", "9007199254740991"},
	{"2^53", "9007199254740992", "9007199254740992"},
	{"2^53+1", "9007199254740993", ""},
	{"-2^53-1", "-9007199254740993", ""},
	{"2^53+2", "9007199254740994", "9007199254740994"},
	{"2^53+1 with fraction is rounded", "9007199254740993.0", "9007199254740992"},
	{"2^53+1 with exponent is rounded", "9007199254740993e0", "9007199254740992"},
	{"2^54", "18014398509481984", "18014398509481984"},
	{"2^60 is a double but not its canonical form", "1152921504606846976", ""},
	{"2^60 as its canonical form", "1152921504606847000", "1152921504606847000"},
	{"2^63-1", "9223372036854775807", ""},
	{"nanoseconds", "1732105200123456789", ""},
	{"nanoseconds of a whole second", "1732105200000000000", "1732105200000000000"},
	{"1e21 written out", "1" + strings.Repeat("0", 21), "1e+21"},
	{"1e20 written out", "1" + strings.Repeat("0", 20), "1" + strings.Repeat("0", 20)},
	{"1e21 written out and one", "1" + strings.Repeat("0", 20) + "1", ""},
	{"1e22 as a literal with exponent", "1e22", "1e+22"},
	{"1e23 written out", "1" + strings.Repeat("0", 23), "1e+23"},
	{"1e308 written out", "1" + strings.Repeat("0", 308), "1e+308"},
	{"1e309 written out", "1" + strings.Repeat("0", 309), ""},
	{"integer of 100,000 digits", strings.Repeat("7", 100000), ""},
	{"17 digits", "0.12345678901234567", "0.12345678901234566"},
	{"17 digits and zeros around", "000.12345678901234567000"[2:], "0.12345678901234566"},
	{"17 digits and 100 zeros before", "0." + strings.Repeat("0", 100) + "12345678901234567", "1.2345678901234567e-101"},
	{"18 digits", "0.123456789012345678", ""},
	{"18 digits, the middle ones zero", "1.00000000000000001", ""},
	{"17 digits, the middle ones zero", "1.0000000000000001", "1"},
	{"18 digits with exponent", "123456789012345678e0", ""},
	{"17 digits over the point", "1234567890.1234567", "1234567890.1234567"},
	{"tenth written out as a double", "0.1000000000000000055511151231257827", ""},
	{"smallest plain", "0.000001", "0.000001"},
	{"below the smallest plain", "0.0000001", "1e-7"},
	{"canonical exponent", "1e-7", "1e-7"},
	{"exponent of two digits", "1e-07", "1e-7"},
	{"exponent of three digits", "1.5e-300", "1.5e-300"},
	{"largest", "1.7976931348623157e308", "1.7976931348623157e+308"},
	{"largest that rounds down", "1.7976931348623158e308", "1.7976931348623157e+308"},
	{"rounds to infinity", "1.7976931348623159e308", ""},
	{"1e309", "1e309", ""},
	{"1e400", "1e400", ""},
	{"-1e400", "-1e400", ""},
	{"1e999999999999", "1e999999999999", ""},
	{"1e18446744073709551617", "1e18446744073709551617", ""},
	{"smallest", "5e-324", "5e-324"},
	{"rounds up to the smallest", "2.5e-324", "5e-324"},
	{"rounds to zero", "2.4e-324", ""},
	{"1e-400", "1e-400", ""},
	{"-1e-999999999999", "-1e-999999999999", ""},
	{"zeros against exponent", "0." + strings.Repeat("0", 999) + "1e1000", "1"},
	{"digits against exponent", "1" + strings.Repeat("0", 1000) + "e-1000", "1"},
	{"zeros against too small an exponent", "0." + strings.Repeat("0", 999) + "1e600", ""},
}

func TestNumbers(t *testing.T) {
	for _, tt := range numbers {
		got, err := Canonicalize([]byte(tt.in), 1)
		if string(got) != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), strings.Trim(tt.in, "-")) {
			t.Errorf("%s: the message repeats the value: %v", tt.name, err)
		}
	}
}

// oracle decides by exact arithmetic. It expands numbers, so exponents must be bounded.
func oracle(t testing.TB, lit string) (canonical string, ok bool) {
	exact, parsed := new(big.Rat).SetString(lit)
	if !parsed {
		t.Fatalf("%s: not a number", lit)
	}
	v, err := strconv.ParseFloat(lit, 64)
	if err != nil || v == 0 && exact.Sign() != 0 {
		return "", false
	}
	canonical, err = jcs.NumberToJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.ContainsAny(lit, ".eE") {
		rounded, _ := new(big.Rat).SetString(canonical)
		return canonical, rounded.Cmp(exact) == 0
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(lit), "e")
	digits := strings.Trim(strings.NewReplacer("-", "", ".", "").Replace(mantissa), "0")
	return canonical, len(digits) <= 17
}

func checkNumber(t testing.TB, lit string) {
	want, ok := oracle(t, lit)
	got, err := Canonicalize([]byte(lit), 1)
	if (err == nil) != ok || ok && string(got) != want {
		t.Errorf("%s: got %s, %v, want %s, %v", lit, got, err, want, ok)
	}
}

func TestNumbersAgainstExactArithmetic(t *testing.T) {
	for _, tt := range numbers {
		if !strings.Contains(tt.in, "99999999") && len(tt.in) < 1000 && !strings.Contains(tt.in, "18446744073709551617") {
			checkNumber(t, tt.in)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "0000123456789999"[r.IntN(16)]
		}
		return string(b)
	}
	for range 6000 {
		whole := strings.TrimLeft(digits(r.IntN(24)), "0")
		if whole == "" {
			whole = "0"
		}
		lit := []string{"", "-"}[r.IntN(2)] + whole
		if r.IntN(2) == 0 {
			lit += "." + digits(1+r.IntN(20))
		}
		if r.IntN(2) == 0 {
			lit += []string{"e", "E-", "e+"}[r.IntN(3)] + strconv.Itoa(r.IntN(340))
		}
		checkNumber(t, lit)
	}
	for range 6000 { // every canonical number is accepted unchanged
		v := math.Float64frombits(r.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		want, err := jcs.NumberToJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Canonicalize([]byte(want), 1); err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v", want, got, err)
		}
	}
}

func FuzzNumber(f *testing.F) {
	f.Add(false, "1", "5", int16(-7), uint8(3))
	f.Add(true, "9007199254740993", "", int16(0), uint8(0))
	f.Fuzz(func(t *testing.T, negative bool, whole, fraction string, exponent int16, form uint8) {
		onlyDigits := func(s string) string {
			return strings.Map(func(r rune) rune {
				if r >= '0' && r <= '9' {
					return r
				}
				return -1
			}, s)
		}
		lit := strings.TrimLeft(onlyDigits(whole), "0")
		if lit == "" {
			lit = "0"
		}
		if negative {
			lit = "-" + lit
		}
		if fraction = onlyDigits(fraction); fraction != "" {
			lit += "." + fraction
		}
		if form&1 != 0 {
			lit += "e" + strconv.Itoa(int(exponent%1000))
		}
		checkNumber(t, lit)
	})
}
