package column_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/column"
)

func TestValidPath(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "amount_usd": true, "order.id": true, "items[0].price": true, "a[0][65535]": true, "A-1.b_2": true, "__proto__": true,
		"": false, ".a": false, "a.": false, "a..b": false, "[0]": false, "a[]": false, "a[01]": false, "a[65536]": false, "a[0]b": false, "a[0": false,
		strings.Repeat("a.", 14) + "a[0]": true, strings.Repeat("a.", 15) + "a[0]": false, "a" + strings.Repeat("[0]", 16): false,
		"a]": false, "é": false, "a b": false, "a.[0]": false, "a\n": false,
	} {
		if got := column.ValidPath(name); got != want {
			t.Errorf("%q: got %v", name, got)
		}
	}
}

func TestParseValue(t *testing.T) {
	for text, want := range map[string]column.Value{
		`1.5`: {Kind: column.Number, Number: 1.5}, `-2`: {Kind: column.Number, Number: -2}, `1e400`: {Kind: column.Number, Number: math.Inf(1)},
		`"x"`: {Kind: column.Text, Text: "x"}, `"\\\""`: {Kind: column.Text, Text: `\"`}, `""`: {Kind: column.Text},
		``: {}, `null`: {}, `true`: {}, `false`: {}, `{}`: {}, `[1]`: {},
	} {
		if got := column.ParseValue([]byte(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestParseConditionRefuses(t *testing.T) {
	for _, text := range []string{"", "a", "a!5", ">5", "=", "a>", "a>x", "a>NaN", "a<Inf", "a>=0x10", "a>1_000", "a~", "a~ ", "a<= ", "a>=" + strings.Repeat("9", 129)} {
		if c, err := column.ParseCondition(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: got %v, %v", text, c.String(), err)
		}
	}
}

// Different numbers are never equal because they have the same double.
func TestEqualNumbers(t *testing.T) {
	for text, valid := range map[string]bool{"a=12345678901234567": false, "a!=12345678901234567": false, "a=-9007199254740992": false, "a=1e300": false,
		"a=9007199254740991": true, "a!=-9007199254740991": true, "a>=12345678901234567": true, "a~12345678901234567": true, "a=0.1": true} {
		if _, err := column.ParseCondition(text); (err == nil) != valid || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v, valid: %v", text, err, valid)
		}
	}
}

// Each operator, with a number, a text and no value.
func TestConditions(t *testing.T) {
	number := func(n float64) column.Value { return column.Value{Kind: column.Number, Number: n} }
	text := func(s string) column.Value { return column.Value{Kind: column.Text, Text: s} }
	values := []column.Value{{}, number(499.5), number(500), number(501), text("500"), text("5,00"), text("Order 500 x")}
	for condition, want := range map[string]string{
		"a=500":   "[false false true false true false false]",
		"a!=500":  "[false true false true false true true]",
		"a>500":   "[false false false true false false false]",
		"a>=500":  "[false false true true false false false]",
		"a<500":   "[false true false false false false false]",
		"a<=5e2":  "[false true true false false false false]",
		"a~ORDER": "[false false false false false false true]",
		"a ~ 00":  "[false false false false true true true]",
		"a=x=y":   "[false false false false false false false]",
	} {
		c, err := column.ParseCondition(condition)
		if err != nil || c.Path != "a" {
			t.Fatalf("%s: got %q, %v", condition, c.Path, err)
		}
		var got []bool
		for _, v := range values {
			got = append(got, c.Accepts(v))
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s: got %v, want %s", condition, got, want)
		}
	}
}

// A condition is parsed or refused, and its text gives it again.
func FuzzParseCondition(f *testing.F) {
	for _, text := range []string{"amount_usd>500", "order.id = A-1", "a!=b", "a~~", "a<=-1e9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := column.ParseCondition(text)
		if err != nil {
			return
		}
		again, err := column.ParseCondition(c.String())
		if err != nil || again.String() != c.String() {
			t.Errorf("%q: %q, %q, %v", text, c.String(), again.String(), err)
		}
	})
}
