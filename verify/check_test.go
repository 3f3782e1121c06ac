package verify

import (
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// honest returns the verdicts of an honest bundle.
func honest(d id.Disclosure, form event.Form) string {
	switch {
	case d == id.DiscloseCommitment:
		return "+++000"
	case d == id.DiscloseFull:
		return "++++++"
	case form == event.FormCanonical:
		return "++++00"
	}
	return "+++++0"
}

func disclosures() []id.Disclosure {
	return []id.Disclosure{id.DiscloseCommitment, id.DiscloseRecord, id.DiscloseFull}
}

func checkHonest(t *testing.T, l *testLog, index, size int) {
	t.Helper()
	for _, d := range disclosures() {
		r := Check(l.bundle(index, size, d), l.options())
		if got, want := verdicts(r), honest(d, formFor(index)); got != want || !r.OK || len(r.Errors) > 0 {
			t.Fatalf("index %d of %d, %v: got %s, %v, want %s", index, size, d, got, r.Errors, want)
		}
		if r.TreeSize != id.Index(size) || r.CheckedAt != testStart || r.LogKeySource != KeyFromArgument {
			t.Fatalf("index %d of %d, %v: got %+v", index, size, d, r)
		}
	}
}

func TestHonestBundles(t *testing.T) {
	for n := byte(1); n <= 2; n++ {
		l := newTestLog(t, n, 257)
		for size := 1; size <= 20; size++ {
			for index := int(n-1) * size / 2; index < size; index++ { // the other log: the right half
				checkHonest(t, l, index, size)
			}
		}
		for _, size := range []int{255, 256, 257} {
			for _, index := range []int{0, 127, 128, size - 1} {
				checkHonest(t, l, index, size)
			}
		}
	}
}

// The server's report of a bundle equals the report of anyone else after the bundle went
// through JSON, with any library.
func TestReportSurvivesJSON(t *testing.T) {
	l := newTestLog(t, 1, 5)
	for index := range 5 {
		for _, d := range disclosures() {
			b := l.bundle(index, 5, d)
			want := Check(b, l.options())
			for _, marshal := range []func(any) ([]byte, error){
				stdjson.Marshal,
				func(v any) ([]byte, error) { return json.Marshal(v) },
			} {
				text, err := marshal(b)
				if err != nil {
					t.Fatal(err)
				}
				parsed, err := ParseBundle(text)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if !reflect.DeepEqual(parsed, b) {
					t.Errorf("got %+v, want %+v", parsed, b)
				}
				if got := Check(parsed, l.options()); !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		}
	}
}

func TestReportJSON(t *testing.T) {
	l := newTestLog(t, 1, 2)
	b := l.bundle(1, 2, id.DiscloseRecord)
	entry := b.Entry
	b.Entry = ""
	got, err := json.Marshal(Check(b, l.options()))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"inclusion_ok":false,"checkpoint_ok":true,"chain_ok":false,"record_ok":false,"signature_ok":null,"envelope_ok":null,"ok":false,` +
		`"log_key_source":"argument","unchecked":["organization_slug","disclosure","organization_id","event_id"],"cosignatures":[],"tree_size":2,` +
		`"checked_at":"2026-11-20T12:00:00.000Z","errors":["inclusion: entry: malformed","chain: entry: malformed","record: entry: malformed"]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.Entry = entry
	got, err = stdjson.Marshal(Check(b, Options{CheckedAt: testStart}))
	if err != nil {
		t.Fatal(err)
	}
	want = `{"inclusion_ok":true,"checkpoint_ok":true,"chain_ok":true,"record_ok":true,"signature_ok":null,"envelope_ok":null,"ok":true,` +
		`"log_key_source":"bundle","unchecked":["organization_slug","disclosure","log_key","record.public_key","record.custody","record.received_at","record.policy"],` +
		`"cosignatures":[],"tree_size":2,"checked_at":"2026-11-20T12:00:00.000Z","errors":[]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestErrorsNameTheirStepInOrder(t *testing.T) {
	l := newTestLog(t, 1, 3)
	b := &Bundle{Disclosure: id.DiscloseFull, Record: new(string), Envelope: new(string)}
	r := Check(b, l.options())
	var steps []string
	for _, e := range r.Errors {
		step, _, _ := strings.Cut(e, ":")
		steps = append(steps, step)
	}
	if got, want := fmt.Sprint(steps), "[inclusion checkpoint chain record envelope]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r.TreeSize != 0 || r.OK {
		t.Errorf("got %+v", r)
	}
}
