package tlog

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	formats "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/id"
)

// newWitness returns the same witness for the same name.
func newWitness(t testing.TB, name string) WitnessSigner {
	t.Helper()
	seed := newSeed("witness " + name)
	private, err := edkey.PrivateFromSeed(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWitnessSigner(name, private)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

const cosignTime = id.Instant(1679315147_000)

// cosignedNote returns a checkpoint with a cosignature by each witness.
func cosignedNote(t testing.TB, witnesses ...WitnessSigner) Note {
	t.Helper()
	note, err := newSigner(t, "log.example/o/one").Sign(Checkpoint{Origin: "log.example/o/one", Size: 7, Root: LeafHash(nil)})
	if err != nil {
		t.Fatal(err)
	}
	n, err := ParseNote(note)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range witnesses {
		if n, err = n.Add(w.Cosign(n.Text, cosignTime+id.Instant(i*1000))); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

func TestCosignaturesAgreeWithAnotherLibrary(t *testing.T) {
	for _, name := range []string{"witness.example/w1", "w", "ü.example", strings.Repeat("x", MaxName)} {
		w := newWitness(t, name)
		theirs, err := formats.NewVerifierForCosignatureV1(w.Key().String())
		if err != nil {
			t.Fatal(err)
		}
		n := cosignedNote(t, w)
		opened, err := note.Open(n.Bytes(), note.VerifierList(theirs))
		if err != nil {
			t.Fatalf("%s: another library rejects it: %v", name, err)
		}
		at, err := formats.CoSigV1Timestamp(opened.Sigs[0])
		if err != nil || id.InstantOf(at) != cosignTime {
			t.Errorf("%s: another library reads %v, %v", name, at, err)
		}
		if got, err := w.Key().Cosigned(n); err != nil || got != cosignTime {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestCosignatureOfAnotherLibraryCounts(t *testing.T) {
	skey, vkey, err := note.GenerateKey(nil, "witness.example/w1")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := formats.NewSignerForCosignatureV1(skey)
	if err != nil {
		t.Fatal(err)
	}
	if vkey, err = formats.VKeyToCosignatureV1(vkey); err != nil {
		t.Fatal(err)
	}
	key, err := ParseWitnessKey(vkey)
	if err != nil || key.String() != vkey {
		t.Fatalf("got %v, %v, want %s", key, err, vkey)
	}
	n := cosignedNote(t)
	signed, err := note.Sign(&note.Note{Text: n.Text}, signer)
	if err != nil {
		t.Fatal(err)
	}
	if n, err = ParseNote(signed); err != nil {
		t.Fatal(err)
	}
	if _, err := key.Cosigned(n); err != nil {
		t.Error(err)
	}
}

func TestVerifyCosignatureRejects(t *testing.T) {
	w, other := newWitness(t, "w.example"), newWitness(t, "v.example")
	text := cosignedNote(t).Text
	good := w.Cosign(text, cosignTime)
	change := func(f func(s *Signature)) Signature {
		s := good
		s.Value = slices.Clone(good.Value)
		f(&s)
		return s
	}
	private := ed25519.NewKeyFromSeed(func() []byte { s := newSeed("witness w.example"); return s[:] }())
	plain := ed25519.Sign(private, []byte(text))
	at := func(seconds uint64) Signature {
		return change(func(s *Signature) {
			binary.BigEndian.PutUint64(s.Value, seconds)
			copy(s.Value[8:], ed25519.Sign(private, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, text)))
		})
	}
	if _, err := w.Key().Verify(text, at(maxCosigned)); err != nil {
		t.Fatalf("the last second: %v", err)
	}
	for name, s := range map[string]Signature{
		"another witness":           other.Cosign(text, cosignTime),
		"another text":              w.Cosign(strings.Replace(text, "7", "8", 1), cosignTime),
		"another name":              change(func(s *Signature) { s.Name = "v.example" }),
		"another key hash":          change(func(s *Signature) { s.KeyHash++ }),
		"another time":              change(func(s *Signature) { s.Value[7]++ }),
		"a byte more":               change(func(s *Signature) { s.Value = append(s.Value, 0) }),
		"a byte less":               change(func(s *Signature) { s.Value = s.Value[:len(s.Value)-1] }),
		"no signature":              change(func(s *Signature) { s.Value = nil }),
		"a signature over the text": change(func(s *Signature) { s.Value = plain }),
		"the same after a time":     change(func(s *Signature) { copy(s.Value[8:], plain) }),
		"a time after 9999":         at(maxCosigned + 1),
		"a time of 2^63":            at(1 << 63),
		"a time of 2^64-1":          at(1<<64 - 1),
	} {
		if at, err := w.Key().Verify(text, s); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: got %v, %v", name, at, err)
		}
	}
	if _, err := (WitnessKey{}).Verify(text, Signature{Value: make([]byte, 72)}); !errors.Is(err, ErrSignature) {
		t.Errorf("no key: got %v", err)
	}
	if _, err := w.Key().Cosigned(cosignedNote(t, other)); !errors.Is(err, ErrSignature) {
		t.Errorf("no line: got %v", err)
	}
}

func TestParseWitnessKeyRefuses(t *testing.T) {
	key := newWitness(t, "w.example").Key()
	good, hash, public := key.String(), key.Hash().String(), key.public
	asLog, err := NewVerifierKey("w.example", public)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"empty":                         "",
		"a log key":                     asLog.String(),
		"a log key's hash":              strings.Replace(good, hash, asLog.Hash().String(), 1),
		"another hash":                  strings.Replace(good, hash, "00000000", 1),
		"another name":                  "v" + good[1:],
		"hash in upper case":            strings.Replace(good, hash, strings.ToUpper(hash)+"A", 1),
		"line end":                      good + "\n",
		"carriage return":               good + "\r",
		"post-quantum":                  "w.example+00000000+" + base64.StdEncoding.EncodeToString(append([]byte{6}, make([]byte, 1312)...)),
		"type 6, short":                 "w.example+00000000+" + base64.StdEncoding.EncodeToString(append([]byte{6}, make([]byte, 32)...)),
		"point of small order":          "w.example+00000000+" + base64.StdEncoding.EncodeToString(append([]byte{4, 1}, make([]byte, 31)...)),
		"name with a space":             strings.Replace(good, "w.", "w .", 1),
		"no signature type":             "w.example+" + hash + "+" + public.String(),
		"key without its tail":          good[:len(good)-1],
		"key with nonzero padding bits": func() string { s := good; return s[:len(s)-2] + "5=" }(),
	} {
		if got, err := ParseWitnessKey(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	if _, err := NewWitnessSigner("a b", edkey.NewPrivate()); !errors.Is(err, ErrMalformed) {
		t.Errorf("name: got %v", err)
	}
}

func TestParseSignatures(t *testing.T) {
	a, b := line("a", 72), line("b", 1)
	for name, c := range map[string]struct {
		lines string
		want  int // if 0, the text is rejected
	}{
		"one":                        {a, 1},
		"several, of one key too":    {a + b + a, 3},
		"the maximum":                {strings.Repeat(a, MaxSignatures), MaxSignatures},
		"one too many":               {strings.Repeat(a, MaxSignatures+1), 0},
		"none":                       {"", 0},
		"an empty line":              {"\n", 0},
		"an empty line before":       {"\n" + a, 0},
		"a trailing empty line":      {a + "\n", 0},
		"an empty line between":      {a + "\n" + b, 0},
		"no line end":                {strings.TrimSuffix(a, "\n"), 0},
		"carriage returns":           {strings.ReplaceAll(a, "\n", "\r\n"), 0},
		"something else":             {"hello\n", 0},
		"something else at the end":  {a + "hello\n", 0},
		"a whole note":               {"a\n1\nb\n\n" + a, 0},
		"larger than a note":         {"— a " + strings.Repeat("A", MaxNote) + "\n", 0},
		"no signature in the line":   {"— a AAAAAA==\n", 0},
		"base64 without its padding": {strings.ReplaceAll(a, "=", ""), 0},
	} {
		got, err := ParseSignatures(c.lines)
		if len(got) != c.want || (err == nil) != (c.want > 0) || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %d lines, %v, want %d", name, len(got), err, c.want)
		}
	}
}

func TestWitnessSignerIsNeverPrinted(t *testing.T) {
	w := newWitness(t, "w.example")
	seed := newSeed("witness w.example")
	holder := struct{ hidden WitnessSigner }{w}
	for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%d"} {
		for _, v := range []any{w, &w, holder, &holder} {
			if got := strings.ToLower(fmt.Sprintf(verb, v)); strings.Contains(got, hex.EncodeToString(seed[:4])) {
				t.Errorf("%s of %T prints the seed", verb, v)
			}
		}
	}
}

func FuzzParseSignatures(f *testing.F) {
	f.Add(line("a", 72) + line("b", 1))
	f.Fuzz(func(t *testing.T, lines string) {
		all, err := ParseSignatures(lines)
		if err != nil {
			return
		}
		if got := string(Note{Signatures: all}.Bytes()); got != "\n"+lines {
			t.Errorf("%q is written %q", lines, got)
		}
	})
}

func FuzzCosignature(f *testing.F) {
	w := newWitness(f, "w.example")
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

func BenchmarkCosignatureVerify(b *testing.B) {
	w := newWitness(b, "w.example")
	n := cosignedNote(b, w)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.Key().Cosigned(n); err != nil {
			b.Fatal(err)
		}
	}
}
