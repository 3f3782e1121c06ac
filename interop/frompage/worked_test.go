package frompage

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// pinned is the key that "A worked example" pins.
const pinned = "log.example/o/34929490-47ca-4f7c-b79e-0ac022b29856+995e7999+AY+LkN5jNfGHcHchGAoxPiPJSq4teCXY9tcO6ujVyRV0"

// worked is the bundle of "A worked example".
func worked(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/worked.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// letters writes six verdicts as T, F and -, in the order of "The verdicts".
func letters(v Verdicts) string {
	out := ""
	for _, verdict := range []Verdict{v.Inclusion, v.Checkpoint, v.Chain, v.Record, v.Signature, v.Envelope} {
		out += map[Verdict]string{True: "T", False: "F", Null: "-"}[verdict]
	}
	return out
}

// TestWorkedExample changes the worked example in one place at a time.
func TestWorkedExample(t *testing.T) {
	const root = "cd66c18ab5ea414f2f8c512a497305b8e62f86faa22200143fbf40077b41d60e"
	for _, c := range []struct{ name, old, new, want string }{
		{"as it stands", "", "", "TTTTTT"},
		{"member escaped", `"version"`, `"v\u0065rsion"`, "TTTTTT"},
		{"number spelled", `"log_index": 2,`, `"log_index": 0.2e1,`, "TTTTTT"},
		{"case of the organization", `"organization_id": "34929490-47ca`, `"organization_id": "34929490-47CA`, "TTTTTT"},
		{"letter of the record", "nztvkaevsgzm3jiqlpvwr3o6lj", "nztvkaevsgzm3jiqlpvwr3o6lk", "TTTFTT"},
		{"record of no form", `\"custody\":\"server\"`, `\"custody\":\"nobody\"`, "TTTF--"},
		{"record not canonical", `"record": "{`, `"record": "{ `, "TTTF--"},
		{"record in the entry", `{\"prev\":\"4504`, `{\"prev\":\"4505`, "FTFTTT"},
		{"event hash", `"event_hash": "2`, `"event_hash": "3`, "FTTTTT"},
		{"root in a proof", root, strings.Replace(root, "c", "d", 1), "FTTTTT"},
		{"size signed", `\n3\nzWb`, `\n4\nzWb`, "FFFTTT"},
		{"origin", `"origin": "log.`, `"origin": "lag.`, "TFTFTT"},
		{"envelope", `A-1003`, `A-1004`, "TTTTTF"},
		{"envelope not canonical", `"envelope": "{`, `"envelope": "{ `, "TTTTTF"},
		{"promised record", `"record": "{`, `"recorb": "{`, "TTTF--"},
		{"record not promised", `"full",` + "\n" + `  "record"`, `"commitment", "recorb"`, "TTT---"},
		{"promised envelope", `"envelope": "{`, `"envelopf": "{`, "TTTTTF"},
		{"erased envelope", `"envelope": "{`, `"erased_at": "2026-11-20T12:00:00.000Z", "envelopf": "{`, "TTTTT-"},
		{"log keys", `"disclosure"`, `"log_keys": ["` + pinned + `"], "disclosure"`, "TTTTTT"},
		{"log key twice", `"disclosure"`, `"log_keys": ["` + pinned + `","` + pinned + `"], "disclosure"`, "TFTTTT"},
		{"other log key", `"log_key": "log`, `"log_key": "lag`, "TFTTTT"},
	} {
		text := strings.Replace(worked(t), c.old, c.new, 1)
		if c.old != "" && text == worked(t) {
			t.Errorf("%s: nothing changed", c.name)
		}
		v, err := Verify([]byte(text), pinned, nil)
		if err != nil || letters(v) != c.want {
			t.Errorf("%s: %s %v, want %s", c.name, letters(v), err, c.want)
		}
	}
}

// TestUnreadable contains bundles that are rejected as a whole.
func TestUnreadable(t *testing.T) {
	for _, c := range [][2]string{
		{`"version": 1`, `"version": 2`},
		{`"version": 1`, `"version": "1"`},
		{`"version": 1`, `"version": 1, "v\u0065rsion": 1`},
		{`"log_index": 2`, `"log_index": -2`},
		{`"log_index": 2`, `"log_index": 2.5`},
		{`"log_index": 2`, `"log_index": 9007199254740992`},
		{`"harbor"`, `"\ud800"`},
		{`"harbor"`, `"harbor", "later": 9007199254740993`},
		{`"harbor"`, `"harbor", "later": ` + strings.Repeat("[", 64) + strings.Repeat("]", 64)},
		{`"harbor"`, `"harbor", "directory": {}`},
		{`"tree_size": 3`, `"tree_size": 3, "more": 1`},
		{`"previous_entry"`, `"previous_entrx"`},
		{`"full"`, `"all"`},
		{"{\n", "\ufeff{\n"},
		{"}\n}", "}\n}x"},
	} {
		text := strings.Replace(worked(t), c[0], c[1], 1)
		if v, err := Verify([]byte(text), pinned, nil); err == nil {
			t.Errorf("%q: read with verdicts %s", c[1], letters(v))
		}
	}
}

// TestSecondProof contains a bundle with another one inside, which is read and reported as unchecked.
func TestSecondProof(t *testing.T) {
	text := worked(t)
	proof := `{"log_index":0,"tree_size":1,"root_hash":"` + strings.Repeat("0", 64) + `","hashes":[]}`
	with := func(inner string) string {
		return strings.Replace(text, `"harbor"`, `"harbor", "directory": {"bundle": `+inner+`, "inclusion": `+proof+`}`, 1)
	}
	if v, err := Verify([]byte(with(text)), pinned, nil); err != nil || !v.SecondProof || !v.Right() {
		t.Error(v, err)
	}
	if _, err := Verify([]byte(with(with(text))), pinned, nil); err == nil {
		t.Error("a second proof inside of a second proof was read")
	}
}

// TestListOfKeys contains the worked example under another pinned key, with lists that give log_key some sizes.
func TestListOfKeys(t *testing.T) {
	const other = "log.example/o/34929490-47ca-4f7c-b79e-0ac022b29856+"
	mine := other + otherKey(t, strings.TrimSuffix(other, "+"))
	line := func(vkey, from, to string) string {
		return `{"vkey":"` + vkey + `","use":"log","from_size":` + from + `,"to_size":` + to + `}`
	}
	lists := func(from, to string) string {
		return `{"keys":[` + line(mine, "0", "null") + `,` + line(pinned, from, to) + `]}`
	}
	for list, want := range map[string]Verdict{
		lists("0", "null"): True, lists("3", "4"): True, lists("0", "3"): False, lists("4", "null"): False,
		lists("0", "9007199254740991"): True,
	} {
		if v, err := Verify([]byte(worked(t)), mine, []byte(list)); err != nil || v.Checkpoint != want {
			t.Error(list, v.Checkpoint, err)
		}
		if v, err := Verify([]byte(worked(t)), pinned, []byte(list)); err != nil || v.Checkpoint != True {
			t.Error("the pinned key", list, v.Checkpoint, err)
		}
	}
	stranger := "other.example+" + otherKey(t, "other.example")
	for _, list := range []string{
		``, `{"keys":[]}`, lists("4", "3"), lists("0", "9007199254740992"), lists("0", "1e19"), `{"keys":[` + line(pinned, "0", "null") + `]}`,
		`{"keys":[` + line(mine, "0", "null") + `,` + line(stranger, "0", "null") + `]}`, strings.ReplaceAll(lists("0", "4"), `"log"`, `"directory"`),
	} {
		if _, err := Verify([]byte(worked(t)), mine, []byte(list)); !errors.Is(err, ErrInputs) {
			t.Errorf("%s: got %v, want no check", list, err)
		}
	}
	if _, err := Verify([]byte(worked(t)), mine+"A", nil); !errors.Is(err, ErrInputs) {
		t.Errorf("a malformed pinned key: got %v", err)
	}
}
