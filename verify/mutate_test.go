package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
)

// document is a bundle as JSON members, by name.
type document map[string]jsontext.Value

func newDocument(t testing.TB, b *Bundle) document {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d document) text(t testing.TB) []byte {
	t.Helper()
	text, err := json.Marshal(d, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// with returns a copy with another value of a member. An empty value removes the member.
func (d document) with(name string, value jsontext.Value) document {
	c := document{}
	for n, v := range d {
		c[n] = v
	}
	if c[name] = value; len(value) == 0 {
		delete(c, name)
	}
	return c
}

// harmless reports whether a single change leaves the bundle valid and need not be listed as
// unchecked, because it does not change the bundle's meaning.
func harmless(path string, before, after jsontext.Value) bool {
	switch path {
	case "organization_id": // UUIDs are compared in lower case
		return strings.EqualFold(string(before), string(after))
	case "verification", "operator_statement": // null is the same as absent
		return len(after) == 0 || after.Kind() == 'n'
	}
	return false
}

// mutations returns replacements for value.
func mutations(value jsontext.Value) []jsontext.Value {
	list := []jsontext.Value{nil, []byte("null"), []byte("true"), []byte(`""`), []byte("{}"), []byte("[]"), []byte("0"), []byte("1"), []byte("-1"), []byte("1.5"), []byte("18446744073709551615"), []byte("9007199254740992"), []byte(`"x"`)}
	switch value.Kind() {
	case '0':
		for by := int64(-2); by <= 2; by++ {
			var n int64
			if json.Unmarshal(value, &n) == nil {
				list = append(list, fmt.Appendf(nil, "%d", n+by))
			}
		}
		list = append(list, fmt.Appendf(nil, `"%s"`, value))
	case '"':
		list = append(list, textMutations(value)...)
	}
	return slices.DeleteFunc(list, func(m jsontext.Value) bool { return string(m) == string(value) })
}

// textMutations changes a text at every position, and as a whole.
func textMutations(value jsontext.Value) (list []jsontext.Value) {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return nil
	}
	add := func(m string) {
		if quoted, err := jsontext.AppendQuote(nil, m); err == nil {
			list = append(list, quoted)
		}
	}
	for i := range len(s) { // a bit, the case, one less or one more, by turns
		switch i % 4 {
		case 0:
			add(s[:i] + string([]byte{s[i] ^ 0x01}) + s[i+1:])
		case 1:
			add(s[:i] + string([]byte{s[i] ^ 0x20}) + s[i+1:])
		case 2:
			add(s[:i] + s[i+1:])
		case 3:
			add(s[:i+1] + s[i:])
		}
	}
	for _, m := range []string{strings.ToUpper(s), strings.ToLower(s), s + " ", " " + s, s + "\n", s + "\x00", s + s, "\ufeff" + s} {
		add(m)
	}
	return list
}

// named reports whether the report's Unchecked lists path, or the only part of it that may
// change: an envelope's signature.
func named(r Report, path string) bool {
	return slices.Contains(r.Unchecked, path) || path == "envelope" && slices.Contains(r.Unchecked, "envelope.sig_value_b64")
}

// Every single change of a valid bundle is rejected by ParseBundle, makes the report false,
// is listed as unchecked, or is harmless.
func TestEverySingleChangeIsDetected(t *testing.T) {
	l := newTestLog(t, 1, 6)
	for _, d := range []id.Disclosure{id.DiscloseCommitment, id.DiscloseFull} {
		b := l.bundle(4, 6, d)
		b.Verification = &Report{Unchecked: []string{}, Cosignatures: []Cosignature{}, Errors: []string{}}
		b.OperatorStatement = &OperatorStatement{ReverifiedTo: 6}
		original := newDocument(t, b)
		for name, value := range original {
			for _, m := range mutations(value) {
				checkChange(t, l, name, value, m, original.with(name, m))
			}
			if value.Kind() == '{' && !slices.Contains([]string{"verification", "operator_statement"}, name) {
				checkInnerChanges(t, l, original, name)
			}
		}
	}
}

// checkInnerChanges changes the members of an object, and of the lists in it.
func checkInnerChanges(t *testing.T, l *testLog, original document, name string) {
	var inner document
	if err := json.Unmarshal(original[name], &inner); err != nil {
		t.Fatal(err)
	}
	for member, value := range inner {
		changed := mutations(value)
		if value.Kind() == '[' {
			changed = append(changed, listMutations(t, value)...)
		}
		for _, m := range changed {
			checkChange(t, l, name+"."+member, value, m, original.with(name, inner.with(member, m).text(t)))
		}
	}
	checkChange(t, l, name+".zzz", nil, []byte("1"), original.with(name, inner.with("zzz", []byte("1")).text(t)))
}

// listMutations changes, removes or doubles one element.
func listMutations(t *testing.T, value jsontext.Value) (lists []jsontext.Value) {
	var elements []jsontext.Value
	if err := json.Unmarshal(value, &elements); err != nil {
		t.Fatal(err)
	}
	add := func(list []jsontext.Value) {
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		lists = append(lists, text)
	}
	for i, element := range elements {
		for _, m := range mutations(element) {
			if len(m) > 0 {
				add(slices.Concat(elements[:i], []jsontext.Value{m}, elements[i+1:]))
			}
		}
		add(slices.Concat(elements[:i], elements[i+1:]))
		add(slices.Concat(elements[:i+1], elements[i:]))
	}
	return lists
}

func checkChange(t *testing.T, l *testLog, path string, before, after jsontext.Value, changed document) {
	t.Helper()
	b, err := ParseBundle(changed.text(t))
	if err != nil {
		return
	}
	r := Check(b, l.options())
	if r.OK && !named(r, path) && !harmless(path, before, after) {
		t.Errorf("%s: the change from %s to %s is not detected", path, before, after)
	}
}

// A bundle assembled from the members of two valid bundles is valid only if it means the
// same as one of them.
func TestGrafts(t *testing.T) {
	l, other := newTestLog(t, 1, 9), newTestLog(t, 2, 9)
	host := l.bundle(4, 8, id.DiscloseFull)
	for name, donor := range map[string]*Bundle{
		"the same at another size":      l.bundle(4, 9, id.DiscloseFull),
		"the event before":              l.bundle(3, 8, id.DiscloseFull),
		"the first event":               l.bundle(0, 8, id.DiscloseFull),
		"the same of another log":       other.bundle(4, 8, id.DiscloseFull),
		"another size of another log":   other.bundle(2, 9, id.DiscloseFull),
		"the same, disclosing a record": l.bundle(4, 8, id.DiscloseRecord),
	} {
		checkGrafts(t, l, name, newDocument(t, host), newDocument(t, donor))
	}
}

// checkGrafts replaces sets of members of host with those of donor.
func checkGrafts(t *testing.T, l *testLog, donorName string, host, donor document) {
	t.Helper()
	var differ []string
	for name := range host {
		if string(host[name]) != string(donor[name]) && name != "organization_slug" && name != "disclosure" {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	for _, set := range graftSets(len(differ)) {
		d, taken := host, []string(nil)
		for i, name := range differ {
			if set>>i&1 == 1 {
				d, taken = d.with(name, donor[name]), append(taken, name)
			}
		}
		b, err := ParseBundle(d.text(t))
		if err != nil {
			continue
		}
		whole := len(taken) == 0 || len(taken) == len(differ) && donorName != "the same, disclosing a record"
		if r := Check(b, Options{}); r.OK != whole {
			t.Errorf("%s: with its %v: got %s, %v, want %v", donorName, taken, verdicts(r), r.Errors, whole)
		}
		if b.LogKey == l.verifier(l.key).String() {
			continue
		}
		if r := Check(b, l.options()); r.OK {
			t.Errorf("%s: with its %v: a bundle under another log's key is accepted for this log", donorName, taken)
		}
	}
}

// graftSets returns sets of n members as bits: all sets if there are few, otherwise each
// member alone, all except each member, none, all, and some in between.
func graftSets(n int) (sets []int) {
	const enough = 512
	all := 1<<n - 1
	if all < enough {
		for set := range all + 1 {
			sets = append(sets, set)
		}
		return sets
	}
	sets = append(sets, 0, all)
	for i := range n {
		sets = append(sets, 1<<i, all&^(1<<i))
	}
	for k := range enough {
		if set := k * 40503 & all; set != 0 && set != all {
			sets = append(sets, set)
		}
	}
	return sets
}
