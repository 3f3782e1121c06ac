package event

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

const (
	someTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	someSpan  = "00f067aa0ba902b7"
)

// The vectors are shared with the clients for Python and TypeScript.
func TestParseTraceparent(t *testing.T) {
	text, err := os.ReadFile("../testdata/traceparent.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Name, Traceparent, Trace string // Trace is "" for one that is ignored
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all) < 30 {
		t.Fatalf("got %d vectors, %v", len(all), err)
	}
	for _, v := range all {
		got, ok := ParseTraceparent(v.Traceparent)
		if string(got.TraceID()) != v.Trace || ok != (v.Trace != "") {
			t.Errorf("%s: got %q, %t, want %q", v.Name, got, ok, v.Trace)
		}
		if ok && got.String() != "00"+v.Traceparent[2:55] {
			t.Errorf("%s: rendered as %s", v.Name, got)
		}
	}
}

// Everything that is parsed is rendered in one form, which is parsed as the same value.
func FuzzTraceparent(f *testing.F) {
	f.Add("00-" + someTrace + "-" + someSpan + "-01")
	f.Add("01-" + someTrace + "-" + someSpan + "-01-x")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, ok := ParseTraceparent(text)
		if !ok {
			return
		}
		again, ok := ParseTraceparent(parsed.String())
		if !ok || again != parsed || parsed.String()[2:] != text[2:55] {
			t.Errorf("%q: got %q", text, parsed)
		}
	})
}

// The record has the member only if a request named a span, and in one spelling.
func TestRecordTraceparent(t *testing.T) {
	r := fullRecord()
	without := r.Text()
	if bytes.Contains(without, []byte("traceparent")) {
		t.Fatalf("got %s", without)
	}
	r.Traceparent, _ = ParseTraceparent("00-" + someTrace + "-" + someSpan + "-01")
	text := r.Text()
	if want := bytes.Replace(without, []byte(`,"v":1}`),
		[]byte(`,"traceparent":"00-`+someTrace+"-"+someSpan+`-01","v":1}`), 1); !bytes.Equal(text, want) {
		t.Fatalf("got %s, want %s", text, want)
	}
	plain := r
	plain.Policy.RuleID = "default" // without an escape
	for _, r := range []Record{r, plain} {
		if parsed, err := ParseRecord(r.Text()); err != nil || parsed.Traceparent != r.Traceparent {
			t.Errorf("got %+v, %v", parsed.Traceparent, err)
		}
	}
	if got := len(text); got > r.estimateLength()+maxFilling {
		t.Errorf("length: got %d, want at most %d", got, r.estimateLength())
	}
	for _, other := range []string{"", "01-" + someTrace + "-" + someSpan + "-01", "00-" + strings.Repeat("0", 32) + "-" + someSpan + "-01",
		"00-" + someTrace + "-" + someSpan + "-01-"} {
		for _, text := range [][]byte{text, plain.Text()} {
			changed := bytes.Replace(text, []byte("00-"+someTrace+"-"+someSpan+"-01"), []byte(other), 1)
			if _, err := ParseRecord(changed); err == nil {
				t.Errorf("%q is accepted", other)
			}
		}
	}
}

func TestEnvelopeTraceparent(t *testing.T) {
	for member, want := range map[string]string{
		`"traceparent":"00-` + someTrace + `-` + someSpan + `-01",`: "00-" + someTrace + "-" + someSpan + "-01",
		`"traceparent":"00-` + someTrace + `-` + someSpan + `",`:    "",
		`"traceparent":7,`: "",
		``:                 "",
		`"x":{"traceparent":"00-` + someTrace + `-` + someSpan + `-01"},`: "",
	} {
		e := Envelope{Canonical: []byte(`{` + member + `"v":1}`)}
		if got := e.Traceparent().String(); got != want {
			t.Errorf("%s: got %q, want %q", member, got, want)
		}
	}
}
