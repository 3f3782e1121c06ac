package tlog

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// newMLDSAWitness returns the same ML-DSA-44 witness for the same name.
func newMLDSAWitness(t testing.TB, name string) WitnessSigner {
	t.Helper()
	seed := newSeed("witness " + name)
	w, err := NewMLDSAWitnessSigner(name, seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestMLDSAAgreesWithAnotherLibrary(t *testing.T) {
	for _, name := range []string{"witness.example/w1", "w", "ü.example", strings.Repeat("x", MaxName)} {
		w := newMLDSAWitness(t, name)
		key, err := ParseWitnessKey(w.Key().String())
		if err != nil || key != w.Key() || !strings.HasPrefix(key.Identity(), "mldsa44-") {
			t.Fatalf("%s: got %v, %v", name, key, err)
		}
		theirs, err := formats.NewVerifierForCosignatureV1(key.String())
		if err != nil {
			t.Fatal(err)
		}
		n := cosignedNote(t, newWitness(t, "beside.example"), w)
		if _, err := note.Open(n.Bytes(), note.VerifierList(theirs)); err != nil {
			t.Errorf("%s: another library rejects it: %v", name, err)
		}
		if got, err := key.Cosigned(n); err != nil || got != cosignTime+1000 {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestMLDSACosignatureOfAnotherLibraryCounts(t *testing.T) {
	skey, vkey, err := formats.GenerateMLDSAKey("witness.example/w1")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := formats.NewSignerForCosignatureV1(skey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseWitnessKey(vkey)
	if err != nil || key.String() != vkey || key.Hash() != KeyHash(signer.KeyHash()) {
		t.Fatalf("got %v, %v, want %s", key, err, vkey)
	}
	signed, err := note.Sign(&note.Note{Text: cosignedNote(t).Text}, signer)
	if err != nil {
		t.Fatal(err)
	}
	n, err := ParseNote(signed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key.Cosigned(n); err != nil {
		t.Error(err)
	}
}

// The message is laid out as C2SP tlog-cosignature specifies, byte for byte.
func TestCosignedTree(t *testing.T) {
	root := id.Hash(bytes.Repeat([]byte{0xab}, hashSize))
	got, ok := mldsaSignedMessage("w.example", 0x0102030405, Checkpoint{Origin: "log.example", Size: 0x1122, Root: root}.Text())
	want := hex.EncodeToString([]byte("subtree/v1\n\x00")) +
		"09" + hex.EncodeToString([]byte("w.example")) + "0000000102030405" +
		"0b" + hex.EncodeToString([]byte("log.example")) + "0000000000000000" + "0000000000001122" + root.String()
	if !ok || hex.EncodeToString(got) != want {
		t.Errorf("got %x, want %s", got, want)
	}
	long := Checkpoint{Origin: id.Origin(strings.Repeat("o", MaxName+1)), Size: 1, Root: root}
	if _, ok := mldsaSignedMessage("w.example", 1, long.Text()); ok {
		t.Error("an origin of 256 bytes fits into the message")
	}
}

func TestVerifyMLDSACosignatureRejects(t *testing.T) {
	w, text := newMLDSAWitness(t, "w.example"), cosignedNote(t).Text
	good := w.Cosign(text, cosignTime)
	if _, err := w.Key().Verify(text, good); err != nil {
		t.Fatal(err)
	}
	renamed, other := newMLDSAWitness(t, "v.example"), w.Key()
	other.name = "v.example"
	change := func(f func(v []byte) []byte) Signature {
		s := good
		s.Value = f(slices.Clone(good.Value))
		return s
	}
	for name, tc := range map[string]struct {
		key  WitnessKey
		text string
		sig  Signature
	}{
		"another size":                   {w.Key(), strings.Replace(text, "\n7\n", "\n8\n", 1), good},
		"another origin":                 {w.Key(), strings.Replace(text, "log.example/o/one", "log.example/o/two", 1), good},
		"another root":                   {w.Key(), strings.Replace(text, "\n7\n", "\n7\nA", 1), good},
		"an extension line":              {w.Key(), text + "x\n", good},
		"another time":                   {w.Key(), text, change(func(v []byte) []byte { v[7]++; return v })},
		"no time":                        {w.Key(), text, w.Cosign(text, 0)},
		"the year 10000":                 {w.Key(), text, change(func(v []byte) []byte { copy(v, []byte{0, 0, 0, 0x3b}); return v })},
		"a bit of the signature":         {w.Key(), text, change(func(v []byte) []byte { v[1000] ^= 1; return v })},
		"the last byte":                  {w.Key(), text, change(func(v []byte) []byte { v[len(v)-1] ^= 1; return v })},
		"cut":                            {w.Key(), text, change(func(v []byte) []byte { return v[:len(v)-1] })},
		"longer":                         {w.Key(), text, change(func(v []byte) []byte { return append(v, 0) })},
		"of the length of Ed25519's":     {w.Key(), text, change(func(v []byte) []byte { return v[:timeSize+edkey.SignatureSize] })},
		"another key":                    {renamed.Key(), text, good},
		"the same key under a new name":  {other, text, Signature{Name: "v.example", KeyHash: other.Hash(), Value: good.Value}},
		"an Ed25519 key of the key hash": {WitnessKey{name: "w.example", hash: w.Key().Hash(), public: newWitness(t, "w.example").Key().public}, text, good},
	} {
		if _, err := tc.key.Verify(tc.text, tc.sig); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestParseWitnessKeyOfMLDSARefuses(t *testing.T) {
	good := newMLDSAWitness(t, "w.example").Key()
	spelled := func(name string, typed []byte) string {
		hash, err := computeKeyHash("w.example", typed)
		if err != nil {
			t.Fatal(err)
		}
		return name + "+" + hash.String() + "+" + base64.StdEncoding.EncodeToString(typed)
	}
	if key, err := ParseWitnessKey(spelled("w.example", good.Typed())); err != nil || key != good {
		t.Fatalf("got %v, %v", key, err)
	}
	for name, vkey := range map[string]string{
		"cut":                  spelled("w.example", good.Typed()[:1312]),
		"longer":               spelled("w.example", append(good.Typed(), 0)),
		"of type 4":            spelled("w.example", append([]byte{4}, good.Typed()[1:]...)),
		"of type 5":            spelled("w.example", append([]byte{5}, good.Typed()[1:]...)),
		"another name":         spelled("v.example", good.Typed()),
		"padding":              good.String() + "=",
		"a line end":           good.String() + "\n",
		"a name of 256":        strings.Repeat("n", MaxName+1) + strings.TrimPrefix(good.String(), "w.example"),
		"much too long":        good.String() + strings.Repeat("A", 1<<20),
		"no key":               "w.example+" + good.Hash().String() + "+",
		"key hash in capitals": "w.example+" + strings.ToUpper(good.Hash().String()) + good.String()[len("w.example+00000000"):],
	} {
		if name == "key hash in capitals" && strings.ToUpper(good.Hash().String()) == good.Hash().String() {
			t.Fatal("choose another name: its key hash has no letters")
		}
		if key, err := ParseWitnessKey(vkey); !errors.Is(err, ErrMalformed) || key != (WitnessKey{}) {
			t.Errorf("%s: got %v, %v", name, key, err)
		}
	}
	if _, err := NewMLDSAWitnessSigner("w.example", make([]byte, 31)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a seed of 31 bytes: got %v", err)
	}
	if _, err := NewMLDSAWitnessSigner("a b", make([]byte, 32)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a name with a space: got %v", err)
	}
}

// Every accepted key is written as it was read, for either algorithm, and another library
// accepts it too.
func FuzzParseWitnessKey(f *testing.F) {
	f.Add(newWitness(f, "w.example").Key().String())
	f.Add(newMLDSAWitness(f, "w.example").Key().String())
	f.Fuzz(func(t *testing.T, vkey string) {
		key, err := ParseWitnessKey(vkey)
		if err != nil {
			if key != (WitnessKey{}) {
				t.Errorf("%q: got %v and %v", vkey, key, err)
			}
			return
		}
		if key.String() != vkey {
			t.Errorf("%q is written %q", vkey, key)
		}
		if _, err := formats.NewVerifierForCosignatureV1(vkey); err != nil {
			t.Errorf("%q: another library rejects it: %v", vkey, err)
		}
	})
}

func FuzzMLDSACosignature(f *testing.F) {
	w := newMLDSAWitness(f, "w.example")
	text := cosignedNote(f).Text
	f.Add(w.Cosign(text, cosignTime).Value)
	theirs, err := formats.NewVerifierForCosignatureV1(w.Key().String())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		_, err := w.Key().Verify(text, Signature{Name: "w.example", KeyHash: w.Key().Hash(), Value: value})
		if err == nil && !theirs.Verify([]byte(text), value) {
			t.Errorf("another library rejects %x", value)
		}
	})
}

func BenchmarkVerifyMLDSA(b *testing.B) {
	w := newMLDSAWitness(b, "w.example")
	n := cosignedNote(b, w)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Key().Cosigned(n); err != nil {
			b.Fatal(err)
		}
	}
}
