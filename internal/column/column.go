// Package column has the columns of payloads: members that an organization names, such as amount_usd, and whose values of acts are
// listed and compared.
package column

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/jcs"
)

// The bounds of columns.
const (
	Max           = 8   // columns of an organization
	MaxConditions = 8   // of a question
	MaxPath       = 128 // bytes
	MaxSteps      = 16  // names and places of a path
	MaxText       = 128 // bytes of a value. Longer texts are not cut, because a comparison would then be wrong
)

// ValidPath reports whether text is the path of a column: names of members, separated by dots, and places in arrays, which are at most
// 65535, such as order.id or items[0].price. A policy writes names with other characters in quotes.
func ValidPath(text string) bool {
	if len(text) > MaxPath || strings.Count(text, ".")+strings.Count(text, "[")+1 > MaxSteps {
		return false
	}
	plain := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
	}
	for name := range strings.SplitSeq(text, ".") {
		rest := strings.TrimLeftFunc(name, plain)
		if rest == name {
			return false
		}
		for rest != "" {
			digits, after, closed := strings.Cut(strings.TrimPrefix(rest, "["), "]")
			n, err := strconv.ParseUint(digits, 10, 16)
			if rest[0] != '[' || !closed || err != nil || strconv.FormatUint(n, 10) != digits {
				return false
			}
			rest = after
		}
	}
	return true
}

// Value is the value of an act in a column. The zero value is none.
type Value struct {
	Kind   Kind
	Number float64 // infinite if it is beyond the doubles
	Text   string
}

// Kind is the kind of a value.
type Kind byte

// The kinds of values.
const (
	None Kind = iota
	Number
	Text
)

// ParseValue returns the value of canonical JSON: a number, a text, or none for anything else.
func ParseValue(text []byte) Value {
	if len(text) == 0 {
		return Value{}
	}
	if decoded, isText := jcs.AppendDecoded(nil, text); isText {
		return Value{Kind: Text, Text: string(decoded)}
	}
	if first := text[0]; first != '-' && (first < '0' || '9' < first) {
		return Value{}
	}
	number, _ := strconv.ParseFloat(string(text), 64)
	return Value{Kind: Number, Number: number}
}

// MaxWhole is the number from which on doubles do not tell whole numbers apart.
const MaxWhole = 1 << 53

// Operators returns the operators of conditions. Longer ones precede their prefixes.
func Operators() []string { return []string{"!=", ">=", "<=", "=", ">", "<", "~"} }

// Condition is a comparison of the values of a column with a literal. Acts without a value do not satisfy any.
type Condition struct {
	Path string

	operator string
	text     string
	lower    string // text in lower case, for ~
	number   float64
	numeric  bool
}

// ParseCondition parses a path, an operator (= != > >= < <= ~) and a literal. ~ means that the text contains the literal, in any case; > >= <
// and <= compare numbers; = and != compare numbers if the literal is one, and texts. Numbers are compared as doubles. So = and != refuse
// literals of 2^53 and more, because different whole numbers would be equal. It returns fault.Invalid if the text is no condition.
func ParseCondition(text string) (Condition, error) {
	at := strings.IndexAny(text, "!=<>~")
	if at < 1 || !utf8.ValidString(text) {
		return Condition{}, fault.New(fault.Invalid, "column must be a path, an operator (= != > >= < <= ~) and a value, such as amount_usd>500")
	}
	c := Condition{Path: strings.TrimSpace(text[:at])}
	for _, operator := range Operators() {
		if literal, found := strings.CutPrefix(text[at:], operator); found {
			c.operator, c.text = operator, strings.TrimSpace(literal)
			break
		}
	}
	if c.operator == "" {
		return c, fault.New(fault.Invalid, "column must have an operator of = != > >= < <= and ~")
	}
	if len(c.text) > MaxText {
		return c, fault.New(fault.Invalid, fmt.Sprintf("The value of column must have at most %d bytes, because longer texts are not indexed", MaxText))
	}
	if n, ok := jcs.ParseNumber(c.text); ok {
		c.number, _ = strconv.ParseFloat(n.String(), 64)
		c.numeric = true
	}
	if equality := c.operator == "=" || c.operator == "!="; equality && c.numeric && math.Abs(c.number) >= MaxWhole {
		return c, fault.New(fault.Invalid,
			"The operators = and != of column compare numbers below 9007199254740992 (2^53): use >= and <=, or ~ for a text")
	}
	switch c.operator {
	case ">", ">=", "<", "<=":
		if !c.numeric {
			return c, fault.New(fault.Invalid, "The operators > >= < and <= of column compare numbers: "+c.operator+" needs a number")
		}
	case "~":
		if c.lower = strings.ToLower(c.text); c.lower == "" {
			return c, fault.New(fault.Invalid, "The operator ~ of column needs a text")
		}
	}
	return c, nil
}

// String returns the condition as ParseCondition reads it, with spaces.
func (c *Condition) String() string { return c.Path + " " + c.operator + " " + c.text }

// Accepts reports whether a value satisfies the condition.
func (c *Condition) Accepts(v Value) bool {
	if v.Kind == None {
		return false
	}
	equal := v.Kind == Text && v.Text == c.text || v.Kind == Number && c.numeric && v.Number == c.number
	switch c.operator {
	case "=":
		return equal
	case "!=":
		return !equal
	case "~":
		return v.Kind == Text && strings.Contains(strings.ToLower(v.Text), c.lower)
	}
	if v.Kind != Number {
		return false
	}
	switch c.operator {
	case ">":
		return v.Number > c.number
	case ">=":
		return v.Number >= c.number
	case "<":
		return v.Number < c.number
	}
	return v.Number <= c.number
}
