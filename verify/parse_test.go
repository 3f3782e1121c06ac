package verify

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
)

func TestParseBundleRefuses(t *testing.T) {
	l := newTestLog(t, 1, 4)
	good := string(newDocument(t, l.bundle(2, 4, id.DiscloseFull)).text(t))
	for _, row := range []struct {
		name, old, with string
		want            error
	}{
		{"empty", good, "", ErrMalformed},
		{"null", good, "null", ErrMalformed},
		{"array", good, "[" + good + "]", ErrMalformed},
		{"cut", good, good[:len(good)-1], ErrMalformed},
		{"trailing value", good, good + "1", ErrMalformed},
		{"BOM", good, "\ufeff" + good, ErrMalformed},
		{"version 2", `"version":1`, `"version":2`, ErrVersion},
		{"version 0", `"version":1`, `"version":0`, ErrVersion},
		{"version as text", `"version":1`, `"version":"1"`, ErrVersion},
		{"member twice", `"version":1`, `"version":1,"version":1`, ErrMalformed},
		{"member twice through an escape", `"version":1`, `"version":1,"\u0076ersion":1`, ErrMalformed},
		{"inner member twice", `"tree_size":4`, `"tree_size":4,"tree_size":4`, ErrMalformed},
		{"unknown inner member", `"tree_size":4`, `"tree_size":4,"x":4`, ErrMalformed},
		{"inner member in upper case", `"tree_size":4`, `"TREE_SIZE":4`, ErrMalformed},
		{"number not exact as double", `"sequence_num":3`, `"sequence_num":9007199254740993`, ErrMalformed},
		{"number with fraction", `"sequence_num":3`, `"sequence_num":3.5`, ErrMalformed},
		{"number negative", `"sequence_num":3`, `"sequence_num":-3`, ErrMalformed},
		{"number beyond 64 bits", `"sequence_num":3`, `"sequence_num":100000000000000000000`, ErrMalformed},
		{"number as text", `"sequence_num":3`, `"sequence_num":"3"`, ErrMalformed},
		{"number of 2^53", `"sequence_num":3`, `"sequence_num":9007199254740992`, ErrMalformed},
		{"index of 2^53", `"log_index":2`, `"log_index":9007199254740992`, ErrMalformed},
		{"tree size of 2^53", `"tree_size":4`, `"tree_size":9007199254740992`, ErrMalformed},
		{"hash null", `"hashes":[`, `"hashes":[null,`, ErrMalformed},
		{"time of seconds", `"version":1`, `"version":1,"erased_at":"2026-11-20T12:00:00Z"`, ErrMalformed},
		{"hash in upper case", `"event_hash":"`, `"event_hash":"A`, ErrMalformed},
		{"hash list an object", `"hashes":[`, `"hashes":{},"x":[`, ErrMalformed},
		{"unknown disclosure", `"disclosure":"full"`, `"disclosure":"all"`, ErrMalformed},
		{"disclosure in upper case", `"disclosure":"full"`, `"disclosure":"Full"`, ErrMalformed},
		{"no UUID", `"organization_id":"ab`, `"organization_id":"a`, ErrMalformed},
		{"lone surrogate", `"organization_slug":"org-1"`, `"organization_slug":"\ud800"`, ErrMalformed},
		{"invalid UTF-8", `"organization_slug":"org-1"`, "\"organization_slug\":\"\xff\"", ErrMalformed},
		{"far too deep", `"version":1`, `"version":1,"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000), ErrMalformed},
	} {
		text := strings.Replace(good, row.old, row.with, 1)
		if text == good {
			t.Fatalf("%s: nothing was mutated", row.name)
		}
		if b, err := ParseBundle([]byte(text)); !errors.Is(err, row.want) || b != nil {
			t.Errorf("%s: got %+v, %v, want %v", row.name, b, err, row.want)
		}
	}
}

// Members that decoding would silently leave at their zero value.
func TestParseBundleRefusesMissingAndNull(t *testing.T) {
	l := newTestLog(t, 1, 4)
	original := newDocument(t, l.bundle(2, 4, id.DiscloseFull))
	for name := range original {
		_, missing := ParseBundle(original.with(name, nil).text(t))
		_, null := ParseBundle(original.with(name, []byte("null")).text(t))
		mayMiss := name == "record" || name == "envelope"
		mayBeNull := mayMiss || name == "previous_entry" || name == "previous_inclusion"
		if got := !errors.Is(missing, ErrMalformed); got != mayMiss {
			t.Errorf("%s missing: got %v", name, missing)
		}
		if got := !errors.Is(null, ErrMalformed); got != mayBeNull {
			t.Errorf("%s null: got %v", name, null)
		}
	}
	for _, name := range []string{"inclusion", "previous_inclusion"} {
		var inner document
		if err := json.Unmarshal(original[name], &inner); err != nil {
			t.Fatal(err)
		}
		for member := range inner {
			for _, value := range []string{"", "null"} {
				text := original.with(name, inner.with(member, []byte(value)).text(t)).text(t)
				if _, err := ParseBundle(text); !errors.Is(err, ErrMalformed) {
					t.Errorf("%s.%s set to %q: got %v, want %v", name, member, value, err, ErrMalformed)
				}
			}
		}
	}
}

// A later server may add members. Older verifiers accept them and report that they did not
// check them.
func TestUnknownMembersAreListed(t *testing.T) {
	l := newTestLog(t, 1, 4)
	d := newDocument(t, l.bundle(2, 4, id.DiscloseRecord))
	d = d.with("key_claim", []byte(`"compromised"`)).with("a", []byte(`{"deep":[1,2,{}]}`)).with("Entry", []byte(`"x"`))
	d = d.with("\u009b31m", []byte("1")).with(strings.Repeat("z", 1000), []byte("1"))
	b, err := ParseBundle(d.text(t))
	if err != nil {
		t.Fatal(err)
	}
	r := Check(b, l.options())
	if got, want := r.Unchecked[len(r.Unchecked)-5:], []string{"Entry", "a", "key_claim", strings.Repeat("z", 64), `\u009b31m`}; !r.OK || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, r.Errors, want)
	}
}

// The server's remarks on the proofs may have any form, because no verdict depends on them.
func TestRemarksOfAnyForm(t *testing.T) {
	l := newTestLog(t, 1, 4)
	for _, value := range []string{`"x"`, `7`, `[1]`, `{"fault":1}`, `{"key_claim":[],"errors":{}}`, `true`, `{}`} {
		d := newDocument(t, l.bundle(2, 4, id.DiscloseFull)).with("verification", []byte(value)).with("operator_statement", []byte(value))
		b, err := ParseBundle(d.text(t))
		if err != nil {
			t.Errorf("%s: got %v", value, err)
			continue
		}
		r := Check(b, l.options())
		if got, want := r.Unchecked[len(r.Unchecked)-2:], []string{"verification", "operator_statement"}; !r.OK || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, unchecked %q", value, r.Errors, r.Unchecked)
		}
	}
}

func TestUncheckedListsWhatIsNotCovered(t *testing.T) {
	l := newTestLog(t, 1, 4)
	always := []string{"organization_slug", "disclosure"}
	statements := []string{"record.public_key", "record.custody", "record.received_at", "record.policy"}
	for _, row := range []struct {
		name string
		d    id.Disclosure
		bend func(b *Bundle)
		o    Options
		want []string
	}{
		{"commitment", id.DiscloseCommitment, func(*Bundle) {}, l.options(), slices.Concat(always, []string{"organization_id", "event_id"})},
		{"record", id.DiscloseRecord, func(*Bundle) {}, l.options(), slices.Concat(always, statements)},
		{"full", id.DiscloseFull, func(*Bundle) {}, l.options(), slices.Concat(always, statements)},
		{"no key", id.DiscloseFull, func(*Bundle) {}, Options{}, slices.Concat(always, []string{"log_key"}, statements)},
		{"with the server's remarks", id.DiscloseFull, func(b *Bundle) {
			b.Verification, b.OperatorStatement, b.ErasedAt = new(Report), new(OperatorStatement), new(id.Instant)
		}, l.options(), slices.Concat(always, statements, []string{"erased_at", "verification", "operator_statement"})},
		{"envelope with another signature", id.DiscloseFull, func(b *Bundle) {
			text := strings.Replace(*b.Envelope, l.events[2].record.SigValueB64, l.events[0].record.SigValueB64, 1)
			b.Envelope = &text
		}, l.options(), slices.Concat(always, statements, []string{"envelope.sig_value_b64"})},
	} {
		b := l.bundle(2, 4, row.d)
		row.bend(b)
		r := Check(b, row.o)
		if !r.OK || !slices.Equal(r.Unchecked, row.want) {
			t.Errorf("%s: got %q, %v, want %q", row.name, r.Unchecked, r.Errors, row.want)
		}
	}
}

// Every parsed bundle can be checked, and gives the same report after a round trip through
// JSON. A report is true only if the three verdicts that are never null are true.
func FuzzParseBundle(f *testing.F) {
	l := newTestLog(f, 1, 5)
	for index := range 3 {
		for _, d := range disclosures() {
			f.Add(newDocument(f, l.bundle(index, 5, d)).text(f))
		}
	}
	v := readVectors(f)
	f.Add(newDocument(f, vectorBundle(f, v, 1)).text(f))
	f.Add([]byte(`{"version":1}`))
	for _, second := range secondProofs(f) {
		f.Add(second)
	}
	options := []Options{{}, l.options()}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := ParseBundle(text)
		if err != nil {
			return
		}
		for _, o := range options {
			r := Check(b, o)
			if r.OK && strings.ContainsAny(verdicts(r), "-") || r.OK != (len(r.Errors) == 0) {
				t.Fatalf("got %v with %s, %v", r.OK, verdicts(r), r.Errors)
			}
			again, err := ParseBundle(newDocument(t, b).text(t))
			if err != nil {
				t.Fatal(err)
			}
			again.unknown = b.unknown // not part of the JSON form
			if b.Directory != nil {
				again.Directory.Bundle.unknown = b.Directory.Bundle.unknown
			}
			if got := Check(again, o); !reflect.DeepEqual(got, r) {
				t.Fatalf("got %s, want %s", fmt.Sprint(got), fmt.Sprint(r))
			}
		}
	})
}

// The texts of a bundle are replaced at random: with the log's key pinned, only the bundle
// itself is valid.
func FuzzCheckTexts(f *testing.F) {
	l := newTestLog(f, 1, 5)
	host, options := l.bundle(3, 5, id.DiscloseFull), l.options()
	for index := 1; index < 5; index++ {
		b := l.bundle(index, 5, id.DiscloseFull)
		f.Add(b.Entry, *b.PreviousEntry, b.Checkpoint, b.LogKey, *b.Record, *b.Envelope)
	}
	f.Fuzz(func(t *testing.T, entry, previous, checkpoint, key, record, envelope string) {
		b := *host
		b.Entry, b.PreviousEntry, b.Checkpoint, b.LogKey, b.Record, b.Envelope = entry, &previous, checkpoint, key, &record, &envelope
		same := entry == host.Entry && previous == *host.PreviousEntry && key == host.LogKey && record == *host.Record
		if r := Check(&b, options); r.OK && !same {
			t.Fatalf("a changed bundle is accepted: %s", verdicts(r))
		}
		Check(&b, Options{})
	})
}
