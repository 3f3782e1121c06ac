package jcs_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/jcs"
)

func TestFindDifference(t *testing.T) {
	long := "1" + strings.Repeat("0", 60) + ".0e-60"
	for name, tc := range map[string]struct {
		text string
		want jcs.Difference
	}{
		"canonical":            {`{"a":1}`, jcs.Difference{}},
		"a Python float":       {`{"payload": {"amount": 10.0}, "b": 2.0}`, jcs.Difference{At: "/payload/amount", Reason: "number", Sent: "10.0", Canonical: "10"}},
		"in a list":            {`{"a":[1,2.50]}`, jcs.Difference{At: "/a/1", Reason: "number", Sent: "2.50", Canonical: "2.5"}},
		"exponent":             {`{"a":1E2}`, jcs.Difference{At: "/a", Reason: "number", Sent: "1E2", Canonical: "100"}},
		"an escaped character": {`{"a":"caf\u00e9 secret"}`, jcs.Difference{At: "/a", Reason: "string", Sent: `\u00e9`, Canonical: "é"}},
		"a surrogate pair":     {`{"a":"x\ud83d\ude00y"}`, jcs.Difference{At: "/a", Reason: "string", Sent: `\ud83d\ude00`, Canonical: "😀"}},
		"a slash":              {`{"a":"x\/y"}`, jcs.Difference{At: "/a", Reason: "string", Sent: `\/`, Canonical: "/"}},
		"another escape":       {`{"a":"\u000a"}`, jcs.Difference{At: "/a", Reason: "string", Sent: `\u000a`, Canonical: `\n`}},
		"upper case":           {`{"a":"\u001F"}`, jcs.Difference{At: "/a", Reason: "string", Sent: `\u001F`, Canonical: `\u001f`}},
		"a name":               {`{"\u0061":1}`, jcs.Difference{At: "/a", Reason: "string", Sent: `\u0061`, Canonical: "a"}},
		"order":                {`{"b":1,"a":2}`, jcs.Difference{Reason: "order"}},
		"order and space":      {`{"b": 1, "a": 2}`, jcs.Difference{Reason: "order"}},
		"white space":          {"{\"a\": \"secret\"}\n", jcs.Difference{Reason: "white_space"}},
		"a long number":        {`{"a":` + long + `}`, jcs.Difference{At: "/a", Reason: "number", Sent: long[:32] + "…", Canonical: "1"}},
		"a long path":          {`{"` + strings.Repeat("é", 200) + `":1.0}`, jcs.Difference{At: "/" + strings.Repeat("é", 127) + "…", Reason: "number", Sent: "1.0", Canonical: "1"}},
	} {
		canonical, err := jcs.Canonicalize([]byte(tc.text), jcs.MaxDepth)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, found := jcs.FindDifference([]byte(tc.text), canonical)
		if got != tc.want || found != (tc.want != jcs.Difference{}) {
			t.Errorf("%s: got %+v, %v; want %+v", name, got, found, tc.want)
		}
	}
}

// Only the first tokens of a text are compared.
func TestFindDifferenceIsBounded(t *testing.T) {
	text := []byte(`{"a":[` + strings.Repeat("1,", 100_000) + `1.0]}`)
	canonical, err := jcs.Canonicalize(text, jcs.MaxDepth)
	if err != nil {
		t.Fatal(err)
	}
	if got, found := jcs.FindDifference(text, canonical); found {
		t.Errorf("got %+v", got)
	}
}

// The difference of any accepted text is bounded.
func FuzzFindDifference(f *testing.F) {
	for _, seed := range []string{`{"a":1.0}`, `{"\u0061":"\ud83d\ude00"}`, `{"b":1,"a":"\\"}`, `{"a":"é\u00e9"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		canonical, err := jcs.Canonicalize(text, jcs.MaxDepth)
		if err != nil {
			return
		}
		if d, _ := jcs.FindDifference(text, canonical); len(d.At) > 260 || len(d.Sent) > 36 || len(d.Canonical) > 36 {
			t.Errorf("%q: got %+v", text, d)
		}
	})
}
