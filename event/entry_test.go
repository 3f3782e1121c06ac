package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// ledgerVectors is testdata/ledger.json: two entries of one log, computed by another
// implementation.
type ledgerVectors struct {
	Origin  id.Origin `json:"origin"`
	Genesis id.Hash   `json:"genesis"`
	Entries []struct {
		Record    string  `json:"record"`
		Entry     string  `json:"entry"`
		EventHash id.Hash `json:"event_hash"`
	} `json:"entries"`
}

func readLedgerVectors(t testing.TB) ledgerVectors {
	t.Helper()
	text, err := os.ReadFile("testdata/ledger.json")
	if err != nil {
		t.Fatal(err)
	}
	var v ledgerVectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVectorsChain(t *testing.T) {
	v := readLedgerVectors(t)
	if got := Genesis(v.Origin); got != v.Genesis {
		t.Errorf("genesis: got %v, want %v", got, v.Genesis)
	}
	prev := v.Genesis
	for i, want := range v.Entries {
		entry, err := ParseEntry([]byte(want.Entry))
		if err != nil {
			t.Fatalf("entry %d: %v", i, err)
		}
		made := Entry{Prev: prev, Record: RecordHash([]byte(want.Record)), Seq: uint64(i) + 1}
		if entry != made {
			t.Errorf("entry %d: got %+v, want %+v", i, entry, made)
		}
		if got := string(made.Text()); got != want.Entry {
			t.Errorf("entry %d: got %s, want %s", i, got, want.Entry)
		}
		if got := made.Hash(); got != want.EventHash {
			t.Errorf("event hash %d: got %v, want %v", i, got, want.EventHash)
		}
		prev = want.EventHash
	}
}

func TestGenesisDiffersByOrigin(t *testing.T) {
	v := readLedgerVectors(t)
	for _, other := range []id.Origin{"", v.Origin + "/2", v.Origin + "\n", "x" + v.Origin} {
		if Genesis(other) == v.Genesis {
			t.Errorf("%q has the genesis value of %q", other, v.Origin)
		}
	}
}

func TestAppendToPreservesPrefix(t *testing.T) {
	e := Entry{Seq: 7}
	got := string(e.AppendTo([]byte("before")))
	if want := "before" + string(e.Text()); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEntryLengths(t *testing.T) {
	longest := Entry{Seq: 1<<64 - 1}
	if got := len(longest.Text()); got != MaxEntryLen {
		t.Errorf("longest: got %d bytes, want %d", got, MaxEntryLen)
	}
	for _, seq := range []uint64{1, 9, 10, 99, 100, 1 << 32, MaxSeq} {
		e := Entry{Prev: id.Hash{1}, Record: id.Hash{2}, Seq: seq}
		if got, err := ParseEntry(e.Text()); err != nil || got != e {
			t.Errorf("seq %d: got %+v, %v", seq, got, err)
		}
	}
}

// entryGrammar is the template as a regular expression, as an oracle.
func entryGrammar() *regexp.Regexp {
	return regexp.MustCompile(`\A\{"prev":"[0-9a-f]{64}","record":"[0-9a-f]{64}","seq":([1-9][0-9]{0,15}),"v":1\}\z`)
}

func allowed(grammar *regexp.Regexp, text []byte) bool {
	m := grammar.FindSubmatch(text)
	if m == nil {
		return false
	}
	seq, err := strconv.ParseUint(string(m[1]), 10, 64)
	return err == nil && seq <= MaxSeq
}

// Every byte of an entry is set to every value, removed, and doubled.
func TestParseEntryOneByteOff(t *testing.T) {
	grammar := entryGrammar()
	text := []byte(readLedgerVectors(t).Entries[1].Entry)
	check := func(mutated []byte) {
		e, err := ParseEntry(mutated)
		if got, want := err == nil, allowed(grammar, mutated); got != want {
			t.Errorf("%q: accepted %v, want %v", mutated, got, want)
		}
		if err == nil && !bytes.Equal(e.Text(), mutated) {
			t.Errorf("%q: written as %q", mutated, e.Text())
		}
	}
	for i := range text {
		mutated := bytes.Clone(text)
		for b := range 256 {
			mutated[i] = byte(b)
			check(mutated)
		}
		check(append(bytes.Clone(text[:i]), text[i+1:]...))
		check(append(bytes.Clone(text[:i+1]), text[i:]...))
		check(text[:i])
	}
}

func TestParseEntryRefuses(t *testing.T) {
	const (
		prev   = `"prev":"0000000000000000000000000000000000000000000000000000000000000000"`
		record = `"record":"00000000000000000000000000000000000000000000000000000000000000aa"`
	)
	good := "{" + prev + "," + record + `,"seq":12,"v":1}`
	if _, err := ParseEntry([]byte(good)); err != nil {
		t.Fatalf("the unmutated entry: %v", err)
	}
	swap := func(old, with string) string { return strings.Replace(good, old, with, 1) }
	for name, text := range map[string]string{
		"empty":                   "",
		"null":                    "null",
		"empty object":            "{}",
		"array":                   "[]",
		"BOM":                     "\ufeff" + good,
		"trailing line feed":      good + "\n",
		"space before":            " " + good,
		"space after a colon":     swap(`"seq":12`, `"seq": 12`),
		"space after a comma":     swap(`,"seq"`, `, "seq"`),
		"twice":                   good + good,
		"hex in upper case":       swap("aa", "AA"),
		"hex in mixed case":       swap("aa", "aA"),
		"hash one digit short":    swap("aa", "a"),
		"hash one digit long":     swap("aa", "aaa"),
		"hash null":               swap(record, `"record":null`),
		"hash as escapes":         swap("aa", `\u0061a`),
		"seq zero":                swap("12", "0"),
		"seq with leading zero":   swap("12", "012"),
		"seq with sign":           swap("12", "+12"),
		"seq negative":            swap("12", "-12"),
		"seq with fraction":       swap("12", "12.0"),
		"seq with exponent":       swap("12", "12e0"),
		"seq with underscore":     swap("12", "1_2"),
		"seq as text":             swap("12", `"12"`),
		"seq null":                swap("12", "null"),
		"seq absent":              swap("12", ""),
		"seq not exact as double": swap("12", "9007199254740993"),
		"seq 2^53":                swap("12", "9007199254740992"),
		"seq 2^64":                swap("12", "18446744073709551616"),
		"seq of 65536 digits":     swap("12", strings.Repeat("9", 1<<16)),
		"v 2":                     swap(`"v":1`, `"v":2`),
		"v as text":               swap(`"v":1`, `"v":"1"`),
		"v 1.0":                   swap(`"v":1`, `"v":1.0`),
		"v missing":               swap(`,"v":1`, ""),
		"prev missing":            swap(prev+",", ""),
		"record missing":          swap(record+",", ""),
		"seq missing":             swap(`"seq":12,`, ""),
		"other order":             "{" + record + "," + prev + `,"seq":12,"v":1}`,
		"v first":                 `{"v":1,` + prev + "," + record + `,"seq":12}`,
		"unknown member":          swap(`"v":1`, `"v":1,"w":1`),
		"prev twice":              swap(record, prev+","+record),
		"member in upper case":    swap(`"seq"`, `"Seq"`),
		"member as escapes":       swap(`"seq"`, `"\u0073eq"`),
		"comma at the end":        swap("1}", "1,}"),
		"not closed":              strings.TrimSuffix(good, "}"),
		"hash with a line feed":   swap("aa", "a\n"),
	} {
		if e, err := ParseEntry([]byte(text)); !errors.Is(err, ErrEntry) || e != (Entry{}) {
			t.Errorf("%s: got %+v, %v, want %v", name, e, err, ErrEntry)
		}
	}
}

func FuzzParseEntry(f *testing.F) {
	for _, e := range readLedgerVectors(f).Entries {
		f.Add([]byte(e.Entry))
	}
	f.Add(Entry{Seq: MaxSeq}.Text())
	f.Add(Entry{Seq: 1<<64 - 1}.Text())
	grammar := entryGrammar()
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ParseEntry(text)
		if got, want := err == nil, allowed(grammar, text); got != want {
			t.Fatalf("accepted %v, want %v", got, want)
		}
		if err == nil && !bytes.Equal(e.Text(), text) {
			t.Fatalf("written as %q", e.Text())
		}
	})
}

func BenchmarkEntryHash(b *testing.B) {
	e := Entry{Prev: id.Hash{1}, Record: id.Hash{2}, Seq: 123456}
	b.ReportAllocs()
	for b.Loop() {
		e.Prev = e.Hash()
	}
}

func BenchmarkParseEntry(b *testing.B) {
	text := Entry{Prev: id.Hash{1}, Record: id.Hash{2}, Seq: 123456}.Text()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseEntry(text); err != nil {
			b.Fatal(err)
		}
	}
}
