package jcs_test

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/internal/jcs"
)

func TestExactAndRecordedForms(t *testing.T) {
	long := strings.Repeat("7", jcs.MaxNumberDigits)
	for _, tc := range []struct{ src, exact, recorded string }{
		{`0`, `0`, `0`},
		{`-0`, `0`, `0`},
		{`-0.0e5`, `0`, `0`},
		{`1.0`, `1`, `1`},
		{`0.1`, `0.1`, `0.1`},
		{`1e3`, `1000`, `1000`},
		{`1e23`, `1e+23`, `1e+23`},
		{`5e-324`, `5e-324`, `5e-324`},
		{`9007199254740991`, `9007199254740991`, `9007199254740991`},
		{`9007199254740992`, `9007199254740992`, `9007199254740992`},
		{`9007199254740993`, `9007199254740993`, `{"$number":"9007199254740993"}`},
		{`-9007199254740993.0`, `-9007199254740993`, `{"$number":"-9007199254740993"}`},
		{`1152921504606846976`, `1152921504606846976`, `{"$number":"1152921504606846976"}`}, // 2^60, whose shortest literal has another value
		{`18446744073709551615`, `18446744073709551615`, `{"$number":"18446744073709551615"}`},
		{`1e21`, `1e+21`, `1e+21`},
		{`1000000000000000000001`, `1000000000000000000001`, `{"$number":"1000000000000000000001"}`},
		{`0.12345678901234567`, `0.12345678901234567`, `{"$number":"0.12345678901234567"}`},
		{`0.12345678901234568`, `0.12345678901234568`, `0.12345678901234568`},
		{`51.50735090000000123400`, `51.507350900000001234`, `{"$number":"51.507350900000001234"}`},
		{`1e400`, `1e+400`, `{"$number":"1e+400"}`},
		{`-12.5E-0400`, `-1.25e-399`, `{"$number":"-1.25e-399"}`},
		{`1.0000000000000000000001e-6`, `0.0000010000000000000000000001`, `{"$number":"0.0000010000000000000000000001"}`},
		{`1.0000000000000000000001e-7`, `1.0000000000000000000001e-7`, `{"$number":"1.0000000000000000000001e-7"}`},
		{long, long, `{"$number":"` + long + `"}`},
		{long + `000e-3`, long, `{"$number":"` + long + `"}`},
		{long + `0`, long[:1] + "." + long[1:] + `e+128`, `{"$number":"` + long[:1] + "." + long[1:] + `e+128"}`},
		{`1e9999`, `1e+9999`, `{"$number":"1e+9999"}`},
		{`[9007199254740993,{"b":1,"a":1e400}]`, `[9007199254740993,{"a":1e+400,"b":1}]`, `[{"$number":"9007199254740993"},{"a":{"$number":"1e+400"},"b":1}]`},
		{`{"$number":"9007199254740993"}`, `{"$number":"9007199254740993"}`, `{"$object":{"$number":"9007199254740993"}}`},
		{`{"$number":9007199254740993}`, `{"$number":9007199254740993}`, `{"$object":{"$number":{"$number":"9007199254740993"}}}`},
		{`{"$object":null}`, `{"$object":null}`, `{"$object":{"$object":null}}`},
		{`{"$object":{"$number":"1"}}`, `{"$object":{"$number":"1"}}`, `{"$object":{"$object":{"$object":{"$number":"1"}}}}`},
		{`{"\u0024number":1,"$object":2}`, `{"$number":1,"$object":2}`, `{"$number":1,"$object":2}`},
		{`{"$tagged":true}`, `{"$tagged":true}`, `{"$tagged":true}`},
		{`{}`, `{}`, `{}`},
		{`[[],{"":[]}]`, `[[],{"":[]}]`, `[[],{"":[]}]`},
	} {
		exact, err := jcs.Exact([]byte(tc.src), jcs.MaxDepth)
		if err != nil || string(exact) != tc.exact {
			t.Errorf("%s: exact form %s, %v; want %s", tc.src, exact, err, tc.exact)
			continue
		}
		if recorded := jcs.Tag(exact); string(recorded) != tc.recorded {
			t.Errorf("%s: recorded form %s, want %s", tc.src, recorded, tc.recorded)
		}
		checkForms(t, []byte(tc.src))
	}
	for _, src := range []string{
		long + `1`, `0.` + long + `1`, `1e10000`, `1e-10000`, `1e99999999999999999999`, `-1e99999999999999999999`,
		`{"a":1,"a":1}`, `"\ud800"`, `01`, `1.`, `.1`, `+1`, `NaN`, ``, `1 2`,
	} {
		if exact, err := jcs.Exact([]byte(src), jcs.MaxDepth); err == nil {
			t.Errorf("%s: accepted as %s", src, exact)
		}
	}
}

func TestUntagMalformed(t *testing.T) {
	for _, recorded := range []string{
		`{"$number":1}`, `{"$number":null}`, `{"$number":{}}`, `{"$number":""}`, `{"$number":"\""}`, `{"$number":"a"}`,
		`{"$number":"1"}`, `{"$number":"0.1"}`, `{"$number":"-0"}`, `{"$number":"09007199254740993"}`, `{"$number":"+9007199254740993"}`,
		`{"$number":"9007199254740993.0"}`, `{"$number":"9.007199254740993e+15"}`, `{"$number":"1e400"}`, `{"$number":" 1e+400"}`,
		`{"$object":1}`, `{"$object":{}}`, `{"$object":[]}`, `{"$object":{"a":1}}`, `{"$object":{"$number":1,"b":2}}`,
		`{"$object":{"$number":{"$number":"1"}}}`, `{"$object":"x"}`, `[{"$object":{"$object":{"$object":1}}},1]`,
	} {
		if exact, ok := jcs.Untag([]byte(recorded)); ok {
			t.Errorf("%s: accepted as %s", recorded, exact)
		}
	}
}

func TestUntagPayload(t *testing.T) {
	const id = `{"$number":"9007199254740993"}`
	for payload, want := range map[string]string{
		`{"$tagged":true,"id":` + id + `}`:                        `{"id":9007199254740993}`,
		`{" ":1,"$tagged":true,"id":[` + id + `]}`:                `{" ":1,"id":[9007199254740993]}`,
		`{"$number":` + id + `,"$tagged":true}`:                   `{"$number":9007199254740993}`,
		`{"$tagged":true,"o":{"$object":{"$number":` + id + `}}}`: `{"o":{"$number":9007199254740993}}`,
		`{"$tagged":true}`:                                        `{}`,
		`{"id":` + id + `}`:                                       "",
		`{"$tagged":false,"id":` + id + `}`:                       "",
		`{"$tagged":"true","id":` + id + `}`:                      "",
		`{"id":` + id + `,"o":{"$tagged":true}}`:                  "",
		`{"$tagged":true,"id":` + id + `,"z":{"$number":"1"}}`:    "",
		`{"$tagged":true,"id":{"$number":9}}`:                     "",
		`[{"$tagged":true}]`:                                      "",
		`{"id":"\"$tagged\":true"}`:                               "",
	} {
		if want == "" {
			want = payload
		}
		if got := jcs.UntagPayload([]byte(payload)); string(got) != want {
			t.Errorf("%s: got %s, want %s", payload, got, want)
		}
	}
	members := map[string]jsontext.Value{"$number": jsontext.Value(`"1"`), "id": jsontext.Value(`[9007199254740993]`)}
	jcs.TagMembers(members)
	text, err := jcs.Marshal(members)
	if want := `{"$number":"1","$tagged":true,"id":[` + id + `]}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
}

func TestCompareNumbers(t *testing.T) {
	ascending := strings.Fields("-1e9999 -1e400 -9007199254740993 -9007199254740992 -1 -0.1000000000000000000001 -0.1 -1e-9999 0 1e-9999 5e-324 0.1 0.1000000000000000000001 1 12 12.5 123 9007199254740992 9007199254740993 1e21 1000000000000000000001 1e400 1e9999")
	for i, l := range ascending {
		for j, r := range ascending {
			n, ok := jcs.ParseNumber(l)
			m, ok2 := jcs.ParseNumber(r)
			want := 0
			if i != j {
				want = 1 - 2*min(1, max(0, j-i))
			}
			if got := n.Compare(m); !ok || !ok2 || got != want || (n == m) != (want == 0) {
				t.Errorf("%s and %s: got %d, want %d", l, r, got, want)
			}
		}
	}
}

// checkForms checks the properties of the forms of a text that Exact accepts.
func checkForms(t *testing.T, src []byte) {
	t.Helper()
	exact, err := jcs.Exact(src, jcs.MaxDepth)
	if err != nil {
		return
	}
	if again, err := jcs.Exact(exact, jcs.MaxDepth); err != nil || !bytes.Equal(again, exact) {
		t.Errorf("%s: the exact form %s becomes %s, %v", src, exact, again, err)
	}
	recorded := jcs.Tag(exact)
	if canonical, err := jcs.Canonicalize(recorded, 4*jcs.MaxDepth); err != nil || !bytes.Equal(canonical, recorded) {
		t.Errorf("%s: the recorded form %s is not canonical: %s, %v", src, recorded, canonical, err)
	}
	// One exact form for each recorded form, so Tag is injective.
	if back, ok := jcs.Untag(recorded); !ok || !bytes.Equal(back, exact) {
		t.Errorf("%s: the recorded form %s means %s, %v; want %s", src, recorded, back, ok, exact)
	}
	// One recorded form for each exact form, so Untag is injective.
	canonical, err := jcs.Canonicalize(src, jcs.MaxDepth)
	if err != nil {
		return
	}
	if back, ok := jcs.Untag(canonical); ok {
		if again := jcs.Tag(back); !bytes.Equal(again, canonical) {
			t.Errorf("%s is the recorded form of %s, whose recorded form is %s", canonical, back, again)
		}
	}
}

func FuzzForms(f *testing.F) {
	for _, seed := range []string{
		`{"a":[9007199254740993,1e400,-0]}`, `{"$number":"9007199254740993"}`, `{"$object":{"$number":{"$object":{"$object":1}}}}`,
		`0.1000000000000000055511151231257827`, `[{"$object":{"$number":"1"}},{"$tagged":true}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		checkForms(t, src)
		jcs.UntagPayload(src)
	})
}

// Random values of numbers near the limits of doubles and objects with reserved names keep their
// values and have different recorded forms.
func TestFormsAreBijective(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	number := func() string {
		digits := fmt.Sprint(1 + random.Uint64N(9))
		for range random.IntN(25) {
			digits += fmt.Sprint(random.IntN(10))
		}
		switch random.IntN(5) {
		case 0:
			return digits
		case 1:
			return "-" + digits + "." + fmt.Sprint(random.Uint64())
		case 2:
			return digits + "e" + fmt.Sprint(random.IntN(700)-350)
		case 3:
			return fmt.Sprint(uint64(1)<<53 + random.Uint64N(5) - 2)
		}
		return fmt.Sprint(random.Float64())
	}
	names := []string{"$number", "$object", "$tagged", "a"}
	var value func(depth int) string
	value = func(depth int) string {
		switch kind := random.IntN(6); {
		case depth == 0 || kind == 0:
			return number()
		case kind == 1:
			return `"` + number() + `"`
		case kind == 2:
			return `[` + value(depth-1) + `,` + value(depth-1) + `]`
		case kind == 3:
			first := random.IntN(len(names) - 1)
			return `{"` + names[first] + `":` + value(depth-1) + `,"` + names[first+1] + `":` + value(depth-1) + `}`
		}
		return `{"` + names[random.IntN(len(names))] + `":` + value(depth-1) + `}`
	}
	exactOf := map[string]string{}
	for range 20_000 {
		src := value(4)
		checkForms(t, []byte(src))
		exact, err := jcs.Exact([]byte(src), jcs.MaxDepth)
		if err != nil {
			t.Fatal(src, err)
		}
		recorded := string(jcs.Tag(exact))
		if other, ok := exactOf[recorded]; ok && other != string(exact) {
			t.Fatalf("%s is the recorded form of %s and %s", recorded, other, exact)
		}
		exactOf[recorded] = string(exact)
	}
	for range 20_000 {
		literal := number()
		n, ok := jcs.ParseNumber(literal)
		want, _ := new(big.Rat).SetString(literal)
		got, ok2 := new(big.Rat).SetString(n.String())
		if !ok || !ok2 || got.Cmp(want) != 0 {
			t.Fatalf("%s: got %s", literal, n)
		}
		exact, err := jcs.Exact([]byte(literal), 1)
		if err != nil {
			t.Fatal(err)
		}
		if kept, _ := new(big.Rat).SetString(string(exact)); kept.Cmp(want) != 0 {
			t.Fatalf("%s: got %s", literal, exact)
		}
	}
}
