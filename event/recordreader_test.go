package event

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// plainRecord is fullRecord without texts that need an escape.
func plainRecord() Record {
	r := fullRecord()
	r.Policy.RuleID = "no-deletion"
	return r
}

// Nearly all records are parsed without a decoder, with the same result, for every combination of nulls.
func TestPlainRecords(t *testing.T) {
	nulls := nullable()
	names := make([]string, 0, len(nulls)+1)
	for name := range nulls {
		names = append(names, name)
	}
	slices.Sort(names)
	nulls["intent"] = func(r *Record) { r.Policy.Intent = "" }
	names = append(names, "intent")
	for set := range 1 << len(names) {
		r := plainRecord()
		r.Policy.Intent = "evt_intent"
		for i, name := range names {
			if set>>i&1 == 1 {
				nulls[name](&r)
			}
		}
		text := r.Text()
		got, accepted := readPlainRecord(text)
		want, err := decodeRecord(text)
		if !accepted || err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %+v, %v, want %+v, %v", text, got, accepted, want, err)
		}
	}
}

func TestRecordsThatAreNotPlain(t *testing.T) {
	for _, text := range []string{"\"", "\\", "é", "\x01", "\x7f", "\u2028"} {
		for _, set := range []func(*Record){
			func(r *Record) { r.Policy.RuleID += text },
			func(r *Record) { r.EventID += id.Event(text) },
		} {
			r := plainRecord()
			set(&r)
			if _, accepted := readPlainRecord(r.Text()); accepted {
				t.Errorf("%q: accepted", text)
			}
			if got, err := ParseRecord(r.Text()); err != nil || !reflect.DeepEqual(got, r) {
				t.Errorf("%q: got %+v, %v, want %+v", text, got, err, r)
			}
		}
	}
}

// Members in limits may have the names of the members around them.
func TestLimitsThatLookLikeTheEnd(t *testing.T) {
	r := plainRecord()
	r.Policy.Limits = []byte(`[{"a":1,"policy_digest":"x"}]`)
	if got, err := ParseRecord(r.Text()); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("got %+v, %v, want %+v", got, err, r)
	}
}

// A text that is almost a record is parsed as by a decoder, or not at all.
func TestPlainReaderAgainstDecoder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	full, nulls := plainRecord(), plainRecord()
	for _, set := range nullable() {
		set(&nulls)
	}
	parts := []string{"null", `""`, `"`, ",", "0", "9", "true", "false", "{", "}", "[]", "intent", " ", "a", "A", "-", "\\"}
	for _, good := range []string{string(full.Text()), string(nulls.Text())} {
		for range 20_000 {
			begin := rng.IntN(len(good))
			end := min(len(good), begin+rng.IntN(6))
			comparePlainReader(t, []byte(good[:begin]+parts[rng.IntN(len(parts))]+good[end:]))
		}
		for _, digits := range []string{`"sequence_num":`, `"policy_version":`} {
			for _, n := range []string{"0", "00", "7", "007", "9007199254740992", "18446744073709551616", "1e3", "-1"} {
				comparePlainReader(t, []byte(strings.Replace(good, digits, digits+n, 1)))
			}
		}
	}
}

// comparePlainReader fails if readPlainRecord accepts a text that a decoder rejects or parses differently.
func comparePlainReader(t *testing.T, text []byte) {
	t.Helper()
	got, accepted := readPlainRecord(text)
	if !accepted {
		return
	}
	if want, err := decodeRecord(text); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %+v, want %+v, %v", text, got, want, err)
	}
}

func BenchmarkParsePlainRecord(b *testing.B) {
	r := plainRecord()
	r.Policy.Limits = nil
	text := r.Text()
	for name, parse := range map[string]func([]byte) (Record, error){"plain": ParseRecord, "decoder": decodeRecord} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parse(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
