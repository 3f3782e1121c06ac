package jcs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
)

// sameSlice reports whether a and b share the same memory.
func sameSlice(a, b []byte) bool {
	return len(a) == len(b) && len(a) > 0 && &a[0] == &b[0]
}

func TestCanonicalize(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"literals", `[null,true,false]`, `[null,true,false]`},
		{"empty", `{"a":{},"b":[],"c":""}`, `{"a":{},"b":[],"c":""}`},
		{"white space", " {\t\"a\" :\r\n[ 1 , 2 ] , \"b\" : { } }\n", `{"a":[1,2],"b":{}}`},
		{"white space in empties", "[ { } , [ ] ]", `[{},[]]`},
		{"trailing white space only", "{} ", `{}`},
		{"order", `{"b":1,"a":2}`, `{"a":2,"b":1}`},
		{"order of three levels", `{"b":{"d":[{"z":1,"y":2}],"c":0},"a":{}}`, `{"a":{},"b":{"c":0,"d":[{"y":2,"z":1}]}}`},
		{"prefix first", `{"aa":1,"a":2,"":3}`, `{"":3,"a":2,"aa":1}`},
		{"UTF-16 order", `{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"\u00f6":4,"1":5,"\r":6,"\u0080":7}`,
			`{"\r":6,"1":5,"` + "\u0080" + `":7,"ö":4,"€":3,"😀":2,"` + "\ufb33" + `":1}`},
		{"order by decoded names", `{"\u0062":1,"\\":2,"\"":3,"a":4}`, `{"\"":3,"\\":2,"a":4,"b":1}`},
		{"canonical escapes", `{"a":"\b\t\n\f\r\"\\\u0000\u001f"}`, `{"a":"\b\t\n\f\r\"\\\u0000\u001f"}`},
		{"other escapes", `["\/","\u0041","\u000a","\u001F","\u00e9","\ud83d\ude00","\u007f"]`,
			`["/","A","\n","\u001f","é","😀","` + "\x7f" + `"]`},
		{"unescaped", "[\"\u2028\u2029\x7fé😀\"]", "[\"\u2028\u2029\x7fé😀\"]"},
		{"escape next to long text", `{"text":"0123456789 0123456789\/0123456789 0123456789"}`, `{"text":"0123456789 0123456789/0123456789 0123456789"}`},
		{"scalar", ` "x" `, `"x"`},
		{"RFC 8785 section 3.2.2",
			`{
				"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
				"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
				"literals": [null, true, false]
			}`,
			`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`},
	}
	for _, tt := range tests {
		in := []byte(tt.in)
		got, err := Canonicalize(in, MaxDepth)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, err, tt.want)
			continue
		}
		if string(in) != tt.in {
			t.Errorf("%s: the source was changed", tt.name)
		}
		if got, want := sameSlice(got, in), tt.in == tt.want; got != want {
			t.Errorf("%s: result is the source: got %v, want %v", tt.name, got, want)
		}
	}
}

func nested(open, close string, levels int) string {
	return strings.Repeat(open, levels-1) + "[]" + strings.Repeat(close, levels-1)
}

func TestCanonicalizeDepth(t *testing.T) {
	for _, levels := range []int{1, 2, 63, 64} {
		for _, doc := range []string{nested("[", "]", levels), nested(`{"a":`, "}", levels)} {
			if _, err := Canonicalize([]byte(doc), 64); err != nil {
				t.Errorf("%d levels: %v", levels, err)
			}
		}
	}
	for _, levels := range []int{65, 66, 100000} {
		for _, doc := range []string{nested("[", "]", levels), nested(`{"a":`, "}", levels)} {
			if _, err := Canonicalize([]byte(doc), 64); !fault.Is(err, fault.Invalid) {
				t.Errorf("%d levels: got %v, want a refusal", levels, err)
			}
		}
	}
}

func TestCanonicalizeRefuses(t *testing.T) {
	tests := []struct{ name, in, message string }{
		{"empty", ``, "The body is not valid JSON"},
		{"white space only", "  \n", "The body is not valid JSON"},
		{"byte order mark", "\xef\xbb\xbf{}", "The body begins with a byte order mark: leave it out"},
		{"second value", `{} {}`, "The body has data after its JSON value: send one value"},
		{"comma after the value", `{},`, "The body has data after its JSON value: send one value"},
		{"trailing NUL", "{}\x00", "The body has data after its JSON value: send one value"},
		{"trailing brace", `{"a":1}}`, "The body has data after its JSON value: send one value"},
		{"unclosed object", `{"a":1`, `The body is not valid JSON in or after member "a"`},
		{"unclosed array", `{"a":[1`, `The body is not valid JSON in or after member "a"`},
		{"unclosed string", `{"a":"x`, `The body is not valid JSON in or after member "a"`},
		{"unclosed name", `{"a`, `The body is not valid JSON`},
		{"cut escape", `{"a":"\`, `The body is not valid JSON in or after member "a"`},
		{"cut unicode escape", `{"a":"\u12`, `The body is not valid JSON in or after member "a"`},
		{"no colon", `{"a" 1}`, "The body is not valid JSON"},
		{"no value", `{"a":}`, `The body is not valid JSON in or after member "a"`},
		{"comma before brace", `{"a":1,}`, `The body is not valid JSON in or after member "a"`},
		{"comma before bracket", `{"a":[1,]}`, `The body is not valid JSON in or after member "a"`},
		{"leading comma", `{,"a":1}`, "The body is not valid JSON"},
		{"no comma", `{"a":1 "b":2}`, `The body is not valid JSON in or after member "a"`},
		{"wrong bracket", `{"a":[1}}`, `The body is not valid JSON in or after member "a"`},
		{"name without quotes", `{a:1}`, "The body is not valid JSON"},
		{"single quotes", `{'a':1}`, "The body is not valid JSON"},
		{"comment", `{/**/}`, "The body is not valid JSON"},
		{"cut word", `[tru]`, "The body is not valid JSON"},
		{"word in capitals", `[True]`, "The body is not valid JSON"},
		{"word with a tail", `[nullx]`, "The body is not valid JSON"},
		{"NaN", `[NaN]`, "The body is not valid JSON"},
		{"Infinity", `[-Infinity]`, "The body is not valid JSON"},
		{"unknown escape", `{"a":"\x41"}`, `The body is not valid JSON in or after member "a"`},
		{"escape of seven", `{"a":"\u00g0"}`, `The body is not valid JSON in or after member "a"`},
		{"control in string", "{\"a\":\"b\nc\"}", `The body is not valid JSON in or after member "a"`},
		{"NUL in string", "{\"a\":\"\x00\"}", `The body is not valid JSON in or after member "a"`},
		{"vertical tab as space", "{\v}", "The body is not valid JSON"},
		{"no-break space as space", "{\u00a0}", "The body is not valid JSON"},
		{"Latin-1 byte", "{\"a\":\"\xe9\"}", `A string in member "a" is not valid UTF-8: send UTF-8`},
		{"overlong", "{\"a\":\"\xc0\x80\"}", `A string in member "a" is not valid UTF-8: send UTF-8`},
		{"surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", `A string in member "a" is not valid UTF-8: send UTF-8`},
		{"beyond U+10FFFF", "{\"a\":\"\xf4\x90\x80\x80\"}", `A string in member "a" is not valid UTF-8: send UTF-8`},
		{"cut character", "{\"a\":\"\xe2\x82\"}", `A string in member "a" is not valid UTF-8: send UTF-8`},
		{"Latin-1 name", "{\"p\":{\"x\":1,\"\xe9\":2}}", `A member name in member "p" is not valid UTF-8: send UTF-8`},
		{"Latin-1 name at the top", "{\"x\":1,\"\xe9\":2}", `A member name in the body is not valid UTF-8: send UTF-8`},
		{"high surrogate", `{"a":"\ud800"}`, `A string in member "a" has half of a surrogate pair: send whole characters`},
		{"low surrogate", `{"a":"\udc00"}`, `A string in member "a" has half of a surrogate pair: send whole characters`},
		{"swapped pair", `{"a":"\ude00\ud83d"}`, `A string in member "a" has half of a surrogate pair: send whole characters`},
		{"two high", `{"a":"\ud83d\ud83d"}`, `A string in member "a" has half of a surrogate pair: send whole characters`},
		{"high and letter", `{"a":"\ud83dx"}`, `A string in member "a" has half of a surrogate pair: send whole characters`},
		{"surrogate in name", `{"\udead":1}`, `A member name in the body has half of a surrogate pair: send whole characters`},
		{"duplicate", `{"a":1,"a":1}`, `Member "a" appears twice: send it once`},
		{"duplicate apart", `{"a":1,"b":2,"c":3,"a":4}`, `Member "a" appears twice: send it once`},
		{"duplicate through an escape", `{"a":1,"\u0061":2}`, `Member "a" appears twice: send it once`},
		{"duplicate through a pair", `{"😀":1,"\ud83d\uDE00":2}`, `Member "\ud83d\ude00" appears twice: send it once`},
		{"duplicate through a canonical escape", `{"\n":1,"\u000a":2}`, `Member "\u000a" appears twice: send it once`},
		{"duplicate empty name", `{"":1,"":2}`, `Member "" appears twice: send it once`},
		{"duplicate inside", `{"p":[{"k":{"x":1,"x":1}}]}`, `Member "x" appears twice: send it once`},
		{"leading zero", `{"n":01}`, `The body is not valid JSON in or after member "n"`},
		{"plus sign", `{"n":+1}`, `The body is not valid JSON in or after member "n"`},
		{"minus alone", `{"n":-}`, `The body is not valid JSON in or after member "n"`},
		{"minus letter", `{"n":-a}`, `The body is not valid JSON in or after member "n"`},
		{"no digit before the point", `{"n":.5}`, `The body is not valid JSON in or after member "n"`},
		{"no digit after the point", `{"n":5.}`, `The body is not valid JSON in or after member "n"`},
		{"point before exponent", `{"n":5.e1}`, `The body is not valid JSON in or after member "n"`},
		{"no exponent digit", `{"n":5e}`, `The body is not valid JSON in or after member "n"`},
		{"no exponent digit after a sign", `{"n":5e+}`, `The body is not valid JSON in or after member "n"`},
		{"hexadecimal", `{"n":0x10}`, `The body is not valid JSON in or after member "n"`},
		{"inexact integer", `{"p":{"ts":[9007199254740993]}}`, `A number in member "ts" is an integer that canonical JSON (RFC 8785) would change: send it as a string`},
		{"integer of a double with a shorter form", `{"n":1152921504606846976}`, `A number in member "n" is an integer that canonical JSON (RFC 8785) would change: send it as a string`},
		{"inexact integer after an object", `{"p":{"ts":[{"u":1},9007199254740993]}}`, `A number in member "ts" is an integer that canonical JSON (RFC 8785) would change: send it as a string`},
		{"many digits", `{"n":0.123456789012345678}`, `A number in member "n" has more than 17 significant digits: round it or send it as a string`},
		{"overflow", `{"n":1e400}`, `A number in member "n" is too large for a JSON number: send it as a string`},
		{"underflow", `{"n":1e-400}`, `A number in member "n" is too close to zero for a JSON number: send 0 or send it as a string`},
		{"overflow outside of an object", `[1e400]`, `A number in the body is too large for a JSON number: send it as a string`},
		{"long name", `{"` + strings.Repeat("n", 65) + `":1e400}`, `A number in member "` + strings.Repeat("n", 64) + `" is too large for a JSON number: send it as a string`},
		{"long escaped name", `{"` + strings.Repeat("é", 11) + `":1e400}`, `A number in member "` + strings.Repeat(`\u00e9`, 10) + `" is too large for a JSON number: send it as a string`},
		{"depth", `{"d":` + nested("[", "]", 64) + `}`, `Nesting in member "d" is deeper than 64 levels: make it flatter or send a part as a string`},
	}
	for _, tt := range tests {
		got, err := Canonicalize([]byte(tt.in), MaxDepth)
		if got != nil || !fault.Is(err, fault.Invalid) || fault.Of(err).Message != tt.message {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, err, tt.message)
		}
		// The same text after something that is not canonical takes the writing path.
		if strings.HasPrefix(tt.in, `{"`) {
			if got, err := Canonicalize([]byte("\n"+tt.in), MaxDepth); got != nil || fault.Of(err).Message != tt.message {
				t.Errorf("%s, after white space: got %s, %v, want %s", tt.name, got, err, tt.message)
			}
		}
	}
}

// With this many members, a quadratic check would not finish in time.
func TestManyMembers(t *testing.T) {
	const n = 50000
	build := func(name func(i int) string) []byte {
		doc := []byte("{")
		for i := range n {
			doc = fmt.Appendf(doc, `"%s":0,`, name(i))
		}
		return append(doc[:len(doc)-1], '}')
	}
	for what, name := range map[string]func(i int) string{
		"falling": func(i int) string { return fmt.Sprintf("%05d", n-i) },
		"mixed":   func(i int) string { return fmt.Sprintf("%05d", i*7919%n) },
		"escaped": func(i int) string { return fmt.Sprintf(`\u0041%05d`, i*7919%n) },
	} {
		doc := build(name)
		got, err := Canonicalize(doc, MaxDepth)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if again, err := Canonicalize(got, MaxDepth); err != nil || !sameSlice(again, got) {
			t.Errorf("%s: not canonical after Canonicalize: %v", what, err)
		}
		doc = append(doc[:len(doc)-1], `,"00007":1,"A00007":1}`...)
		if _, err := Canonicalize(doc, MaxDepth); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: duplicate accepted: %v", what, err)
		}
	}
}

// document writes random JSON whose objects have up to 40 members in any order and random
// white space.
func document(r *rand.Rand, doc []byte, depth int) []byte {
	if r.IntN(8) == 0 {
		doc = append(doc, ' ')
	}
	kind := r.IntN(4)
	if depth == 0 {
		kind += 2
	}
	switch kind {
	case 0:
		doc = append(doc, '{')
		for i, n := range r.Perm(1 + r.IntN(40)) {
			if i > 0 {
				doc = append(doc, ',')
			}
			doc = fmt.Appendf(doc, `"%c%d":`, []rune("aé\uffee😀")[n%4], n)
			doc = document(r, doc, depth-1)
		}
		return append(doc, '}')
	case 1:
		doc = append(doc, '[')
		doc = document(r, doc, depth-1)
		doc = append(doc, ',')
		return append(document(r, doc, depth-1), ']')
	case 2:
		return append(doc, `"\u0041\n"`...)
	default:
		return fmt.Appendf(doc, "%g", r.NormFloat64())
	}
}

func TestRandomDocumentsAgainstJSONText(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		doc := document(r, nil, 4)
		want := jsontext.Value(bytes.Clone(doc))
		if err := want.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		got, err := Canonicalize(doc, MaxDepth)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: got %s, %v, want %s", doc, got, err, want)
		}
		if again, err := Canonicalize(got, MaxDepth); err != nil || !sameSlice(again, got) {
			t.Fatalf("%s: not its own canonical form: %v", got, err)
		}
	}
}

func TestParseObjectMembers(t *testing.T) {
	for _, in := range []string{
		`{"a":1,"b":{"x":[1,{"y":2}]},"c\n":"t"}`,
		"{ \"c\\u000a\" : \"t\", \"b\" : {\"x\":[1,{\"y\":2.0}]}, \"\\u0061\" : 1e0 }\n",
	} {
		canonical, members, err := ParseObject(nil, []byte(in), MaxDepth)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range members {
			got = append(got, string(m.Name(canonical)), string(canonical[m.Value:m.End]), string(canonical[m.Start:m.End]))
		}
		want := []string{
			"a", "1", `"a":1`,
			"b", `{"x":[1,{"y":2}]}`, `"b":{"x":[1,{"y":2}]}`,
			`c\n`, `"t"`, `"c\n":"t"`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{`[]`, ` [{"a":1}]`, `"a"`, `1`, `null`} {
		_, _, err := ParseObject(nil, []byte(in), MaxDepth)
		if got, want := fault.Of(err).Message, "The body must be a JSON object"; got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
	if canonical, members, err := ParseObject(nil, []byte(`{}`), MaxDepth); err != nil || len(members) != 0 || string(canonical) != "{}" {
		t.Errorf("{}: got %s, %v, %v", canonical, members, err)
	}
}

func TestAppendStringAndDecoded(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `""`},
		{"plain é😀", `"plain é😀"`},
		{"\x00\x1f\b\t\n\f\r\"\\/\x7f\u2028", `"\u0000\u001f\b\t\n\f\r\"\\/` + "\x7f\u2028" + `"`},
	} {
		got := AppendString([]byte("x"), tt.text)
		if string(got) != "x"+tt.want {
			t.Errorf("%q: got %s, want %s", tt.text, got[1:], tt.want)
		}
		if back, ok := AppendDecoded(nil, got[1:]); !ok || string(back) != tt.text {
			t.Errorf("%q: got %q back", tt.text, back)
		}
	}
	for _, value := range []string{`1`, `null`, `{}`, `[""]`, ``} {
		if got, ok := AppendDecoded(nil, []byte(value)); ok || got != nil {
			t.Errorf("%s: got the string %q", value, got)
		}
	}
}

func TestMarshal(t *testing.T) {
	got, err := Marshal(map[string]any{"b": 1.0, "a": []string{"é"}})
	if want := `{"a":["é"],"b":1}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for name, v := range map[string]any{"inexact integer": uint64(1<<53 + 1), "channel": make(chan int)} {
		if got, err := Marshal(v); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
}

// Inside a string, \ufeff is a zero-width no-break space, not a byte order mark.
func TestByteOrderMarkInsideAString(t *testing.T) {
	in := []byte("\"\ufeff\"")
	if got, err := Canonicalize(in, MaxDepth); err != nil || !sameSlice(got, in) {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzCanonicalize(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,2.50,-0,1e21,{"z":null,"a":"\u0041\n"}],"a":{"x":"é"}}`,
		`{"a":1,"\u0061":2}`, `[1e400,0.1e1,9007199254740993]`, " [ \"\\ud83d\\ude00\" ] ", `{"😀":1,"` + "\ufb33" + `":2}`,
		`{"ts":1732105200123456789}`, `[5e-324,1.7976931348623157e308,123456789012345678]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		before := bytes.Clone(src)
		got, err := Canonicalize(src, MaxDepth)
		if !bytes.Equal(src, before) {
			t.Fatal("the source was changed")
		}
		other := jsontext.Value(bytes.Clone(src))
		otherErr := other.Canonicalize()
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("not an Invalid fault: %v", err)
			}
			if otherErr == nil && !strings.Contains(err.Error(), "number") && !strings.Contains(err.Error(), "Nesting") {
				t.Fatalf("%q: jsontext accepts it: %v", src, err)
			}
			return
		}
		if otherErr != nil || !bytes.Equal(got, other) {
			t.Fatalf("%q: got %s, jsontext has %s, %v", src, got, other, otherErr)
		}
		if third, err := jcs.Transform(src); err == nil && !bytes.Equal(got, third) {
			t.Fatalf("%q: got %s, gowebpki/jcs has %s", src, got, third)
		}
		if again, err := Canonicalize(got, MaxDepth); err != nil || !sameSlice(again, got) {
			t.Fatalf("%q: %s is not its own canonical form: %v", src, got, err)
		}
	})
}
