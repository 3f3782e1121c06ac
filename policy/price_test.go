package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

// priced is a function of conditions and a payload of about n bytes for it.
type priced struct {
	name    string
	when    string
	payload func(n int) string
	more    uint64 // units for 1,600 more bytes
}

func textOf(n int) string { return `{"s":"` + strings.Repeat("a", n) + `"}` }
func texts(n int) string {
	return `{"s":"` + strings.Repeat("a", n) + `","t":"` + strings.Repeat("a", n-1) + `b"}`
}
func equalTexts(n int) string {
	return `{"s":"` + strings.Repeat("a", n) + `","t":"` + strings.Repeat("a", n) + `"}`
}
func numbersOf(n int) string { return `{"s":[` + strings.Repeat("1,", n/2) + `2]}` }
func listsOf(n int) string   { return `{"s":[` + strings.Repeat("[],", n/3) + `[1]]}` }
func objects(n int) string   { return `{"s":[` + strings.Repeat(`{"a":1},`, n/8) + `{}]}` }
func wordsOf(n int) string   { return `{"s":[` + strings.Repeat(`"aaaaa",`, n/8) + `"b"]}` }
func members(n int) string {
	var b strings.Builder
	b.WriteString(`{"s":{`)
	for i := range n / 8 {
		fmt.Fprintf(&b, `"%05d":1,`, i)
	}
	return b.String() + `"z":1}}`
}
func nested(n int) string {
	return `{"s":` + strings.Repeat(`{"s":`, 60) + `"` + strings.Repeat("a", n) + `"` + strings.Repeat(`}`, 60) + `}`
}
func deep(n int) string {
	return `{"s":` + strings.Repeat(`[`, 60) + strings.Repeat("1,", n/2) + `1` + strings.Repeat(`]`, 60) + `}`
}

// prices lists all functions and operators that read more than a fixed number of bytes, each with an
// expensive input.
var prices = []priced{
	{"read a text", `payload.s != ""`, textOf, 200},
	{"read numbers", `size(payload.s) > 0`, numbersOf, 1100},
	{"read lists", `size(payload.s) > 0`, listsOf, 2965},
	{"read objects", `size(payload.s) > 0`, objects, 1300},
	{"read members", `size(payload.s) > 0`, members, 475},
	{"read what is nested", `payload` + strings.Repeat(".s", 61) + ` != ""`, nested, 6200},
	{"read nested lists", `size(payload.s) > 0`, deep, 6600},
	{"matches", `payload.s.matches("(a|aa)+b$")`, textOf, 1300},
	{"matches a repetition", `payload.s.matches("a{0,50}z0")`, textOf, 10600},
	{"matches classes", `payload.s.matches("(\\pL|\\pN|\\pS)*[^a]$")`, textOf, 11000},
	{"matches case", `payload.s.matches("(?i)(a|b|c|d|e|f)*K$")`, textOf, 1000},
	{"matches at the beginning", `payload.s.matches("^(?:a|b)*$")`, textOf, 800},
	{"matches words", `payload.s.matches("(\\ba|a\\B)*\\b\\z.")`, textOf, 1500},
	{"contains", `payload.s.contains("aaaaaaaaaaaaaaab")`, textOf, 300},
	{"contains a long one", `payload.s.contains(payload.t)`, texts, 600},
	{"startsWith", `payload.s.startsWith(payload.t)`, equalTexts, 500},
	{"endsWith", `payload.s.endsWith(payload.t)`, equalTexts, 500},
	{"equal texts", `payload.s == payload.t`, equalTexts, 500},
	{"less", `payload.s < payload.t`, texts, 500},
	{"size", `size(payload.s) == 1`, textOf, 300},
	{"joined texts", `payload.s + payload.s == "a"`, textOf, 400},
	{"joined lists", `size(payload.s + payload.s) == 1`, numbersOf, 2600},
	{"in numbers", `3.0 in payload.s`, numbersOf, 1100},
	{"in words", `"aaaab" in payload.s`, wordsOf, 500},
	{"in lists", `[1.0, 2.0] in payload.s`, listsOf, 2965},
	{"in objects", `{"a": 2.0} in payload.s`, objects, 1500},
	{"in joined lists", `3.0 in payload.s + [1.0]`, numbersOf, 1600},
	{"in literals", `payload.s in [payload.t, payload.t, payload.t]`, texts, 800},
	{"equal lists", `payload.s == payload.s + []`, numbersOf, 1600},
	{"a computed name", `payload[payload.s] == 1`, textOf, 400},
	{"has a computed name", `payload.s in payload`, textOf, 500},
	{"a computed name of a map", `{payload.s: 1}[payload.t] == 1`, texts, 600},
	{"a key that is not there", `{"a": 1}[payload.s] == 1`, textOf, 300},
	{"double", `double(payload.s) == 1.0`, textOf, 200},
	{"int", `int(payload.s) == 1`, textOf, 200},
	{"uint", `uint(payload.s) == 1u`, textOf, 200},
	{"bool", `bool(payload.s)`, textOf, 200},
	{"duration", `duration(payload.s) == duration("1s")`, textOf, 200},
	{"timestamp", `timestamp(payload.s) == now`, textOf, 200},
	{"decimal", `decimal(payload.s) == decimal(1)`, textOf, 200},
	{"string", `string(payload.s) == "a"`, textOf, 200},
}

// What a function reads is paid for in proportion to its length: one unit is 16 bytes of text or JSON,
// once for each time and each level at which they are read, 2 scalar elements, or 16 steps of a
// pattern.
func TestPrices(t *testing.T) {
	for _, p := range prices {
		c := compile(t, withWhen(t, "deny", p.when, `,"requires":[]`))
		less, more := policy.Cost(c, at(p.payload(1600))), policy.Cost(c, at(p.payload(3200)))
		if got := more - less; got != p.more {
			t.Errorf("%s: 1600 bytes more cost %d units, want %d", p.name, got, p.more)
		}
		if again := policy.Cost(c, at(p.payload(3200))); again != more {
			t.Errorf("%s: costs %d units, and %d the next time", p.name, more, again)
		}
	}
}

// pricedPolicy returns a policy with the condition repeated as often as fits into 2 KiB.
func pricedPolicy(tb testing.TB, when string) *policy.Compiled {
	tb.Helper()
	many := "(" + when + ")"
	for range 9 {
		if strings.Contains(when, ".s.s") || strings.Contains(when, "matches") {
			break
		}
		many += " || (" + when + ")"
	}
	return compile(tb, withWhen(tb, "deny", many, `,"requires":["s"]`))
}

// BenchmarkPrices measures the time of a unit of each function: the prices follow the most
// expensive. Work that is done once for a payload is included.
func BenchmarkPrices(b *testing.B) {
	for _, p := range prices {
		b.Run(strings.ReplaceAll(p.name, " ", "-"), func(b *testing.B) {
			for _, n := range []int{64, 60000} {
				c, in := pricedPolicy(b, p.when), at(p.payload(n))
				b.Run(fmt.Sprint(n), func(b *testing.B) {
					for b.Loop() {
						c.Evaluate(in)
					}
					units := policy.Cost(c, in)
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(units), "ns/unit")
					b.ReportMetric(float64(units), "units")
				})
			}
		})
	}
}
