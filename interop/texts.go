package interop

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Generator generates JSON texts without LF. A quarter of them is damaged in one place; about a third breaks a rule of the
// canonical form, mostly by one change of a valid text.
type Generator struct{ r *rand.Rand }

// NewGenerator returns the generator for a seed.
func NewGenerator(seed uint64) Generator { return Generator{rand.New(rand.NewPCG(seed, 8785))} }

// Text returns the next text.
func (g Generator) Text() string {
	text := g.value(1)
	if g.r.IntN(4) == 0 {
		text = g.damage(text)
	}
	return text
}

func (g Generator) value(depth int) string {
	switch n := g.r.IntN(10); {
	case n < 2 && depth < 6:
		return g.object(depth)
	case n < 4 && depth < 6:
		return "[" + g.joined(g.r.IntN(4), func() string { return g.value(depth + 1) }) + "]"
	case n < 6:
		return g.quoted()
	case n == 6:
		return []string{"true", "false", "null"}[g.r.IntN(3)]
	}
	return g.number()
}

func (g Generator) object(depth int) string {
	return "{" + g.joined(g.r.IntN(5), func() string { return g.quoted() + g.space() + ":" + g.value(depth+1) }) + "}"
}

func (g Generator) joined(n int, part func() string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = g.space() + part() + g.space()
	}
	return strings.Join(parts, ",")
}

func (g Generator) space() string { return []string{"", "", "", " ", "\t", "\r "}[g.r.IntN(6)] }

func (g Generator) quoted() string {
	if g.r.IntN(8) == 0 { // names with a meaning in recorded arguments
		return []string{`"$number"`, `"$object"`, `"$tagged"`, `"\u0024number"`}[g.r.IntN(4)]
	}
	pieces := []string{"a", "B", "é", "€", "😀", "\ufb33", "\u2028", `\n`, `\u0000`, `\u001F`, `\/`, `\\`, `\"`, `\u0041`,
		`\ud83d\ude00`, `\uD800`, `\udc00`, "\x7f", "__proto__", "10", "~/", `\u20ac`}
	var b strings.Builder
	for range g.r.IntN(5) {
		b.WriteString(pieces[g.r.IntN(len(pieces))])
	}
	return `"` + b.String() + `"`
}

func (g Generator) number() string {
	switch g.r.IntN(9) {
	case 0:
		return strconv.FormatInt(g.r.Int64()>>g.r.IntN(64), 10)
	case 1:
		return strconv.FormatUint(1<<53+g.r.Uint64N(5), 10)
	case 2:
		return fmt.Sprintf("%d%s", g.r.IntN(1000), strings.Repeat("0", g.r.IntN(25)))
	case 3:
		return strconv.FormatFloat(g.double(), 'g', -1, 64)
	case 4:
		return strconv.FormatFloat(g.double(), 'e', g.r.IntN(20), 64)
	case 5:
		return fmt.Sprintf("%d.%0*d", g.r.IntN(100), 1+g.r.IntN(18), g.r.IntN(1000))
	case 6:
		return fmt.Sprintf("%dE%+d", g.r.IntN(100), g.r.IntN(700)-350)
	case 7:
		return []string{"-0", "-0.0", "0e99", "1e21", "1e-7", "5e-324", "1.7976931348623157e308", "1.7976931348623159e308", "2.5e-324",
			"9007199254740993", "18446744073709551616", "0.1", "1E400", "123456789012345678901234567890"}[g.r.IntN(14)]
	}
	return fmt.Sprintf("%d", g.r.IntN(1e6)-5e5)
}

// double returns a finite double with random bits.
func (g Generator) double() float64 {
	for {
		if v := math.Float64frombits(g.r.Uint64()); !math.IsNaN(v) && !math.IsInf(v, 0) {
			return v
		}
	}
}

// damage changes one place of a text.
func (g Generator) damage(text string) string {
	at := g.r.IntN(len(text))
	wrong := []string{",", "}", "]", `"`, "0", "\x00", "\xff", "\xed\xa0\x80", "+", ".", "e", "\ufeff", "\u00a0", `\`, `\u12`, "//", "'", "NaN",
		`{"a":1,"a":1}`, strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat("[", 64) + strings.Repeat("]", 64)}
	piece := wrong[g.r.IntN(len(wrong))]
	switch g.r.IntN(3) {
	case 0:
		return text[:at] + piece + text[at:]
	case 1:
		return text[:at] + piece + text[at+1:]
	}
	return text[:at] + text[at+1:]
}
