package verify

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// keysText returns an answer of transparency/keys with keys of all uses.
func keysText(t testing.TB) (text string, old, current tlog.VerifierKey) {
	t.Helper()
	const name = "log.example/o/one"
	var keys []tlog.VerifierKey
	for _, fill := range []byte{71, 72} {
		k, err := tlog.NewVerifierKey(name, testKey(t, fill).Public())
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	return fmt.Sprintf(`{"keys":[{"vkey":"%s","use":"log","from_size":0,"to_size":1000},{"vkey":"x+y","use":"grant","from_size":0,"to_size":null},`+
		`{"vkey":"%s","use":"log","from_size":990,"to_size":null,"later":1}],"later":{}}`, keys[0], keys[1]), keys[0], keys[1]
}

func TestParseKeys(t *testing.T) {
	text, old, current := keysText(t)
	got, err := ParseKeys([]byte(text))
	if want := []LogKey{{old, 0, 1000}, {current, 990, tlog.MaxSize + 1}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for size, want := range map[uint64][2]bool{0: {true, false}, 989: {true, false}, 990: {true, true}, 999: {true, true}, 1000: {false, true}, 1<<63 - 1: {false, true}} {
		for i, k := range got {
			if k.Signed(id.Index(size)) != want[i] {
				t.Errorf("key %d at size %d: got %v", i, size, !want[i])
			}
		}
	}
}

func TestParseKeysRefuses(t *testing.T) {
	good, old, _ := keysText(t)
	with := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, bad := range map[string]string{
		"empty":                   ``,
		"no object":               `[]`,
		"no keys":                 `{}`,
		"null":                    `{"keys":null}`,
		"empty list":              `{"keys":[]}`,
		"keys of other uses only": `{"keys":[{"vkey":"x","use":"grant","from_size":0,"to_size":null}]}`,
		"key of another type":     with(`"`+old.String()+`"`, `7`),
		"malformed key":           with(old.String(), old.String()+"="),
		"no use":                  with(`"use":"log",`, ``),
		"no from_size":            with(`"from_size":0,`, ``),
		"no to_size":              with(`,"to_size":1000`, ``),
		"from_size null":          with(`"from_size":0`, `"from_size":null`),
		"negative size":           with(`"from_size":0`, `"from_size":-1`),
		"size not whole":          with(`"to_size":1000`, `"to_size":1000.5`),
		"size as text":            with(`"to_size":1000`, `"to_size":"1000"`),
		"sizes reversed":          with(`"from_size":0,"to_size":1000`, `"from_size":1000,"to_size":0`),
		"size beyond all trees":   with(`"to_size":1000`, `"to_size":18446744073709551615`),
		"member twice":            with(`"use":"log"`, `"use":"log","use":"log"`),
		"trailing text":           good + "x",
		"not UTF-8":               with(`"later":1`, "\"l\xff\":1"),
	} {
		if got, err := ParseKeys([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// Parsed keys have consistent bounds and one spelling.
func FuzzParseKeys(f *testing.F) {
	text, _, _ := keysText(f)
	f.Add([]byte(text))
	f.Add([]byte(`{"keys":[{"vkey":"","use":"log","from_size":1e2,"to_size":null}]}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		keys, err := ParseKeys(src)
		if err != nil && !errors.Is(err, ErrMalformed) || err == nil && len(keys) == 0 {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			if again, err := tlog.ParseVerifierKey(k.Key.String()); err != nil || again != k.Key || k.From > k.To || k.To > tlog.MaxSize+1 {
				t.Errorf("%+v, %v", k, err)
			}
		}
	})
}
