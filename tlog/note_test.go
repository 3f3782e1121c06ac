package tlog

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/agentledger/agentledger/edkey"
)

// line returns a signature line with n bytes after the key hash.
func line(name string, n int) string {
	return "— " + name + " " + base64.StdEncoding.EncodeToString(make([]byte, 4+n)) + "\n"
}

func lines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(line(fmt.Sprint("w", i), 64))
	}
	return b.String()
}

func TestParseNote(t *testing.T) {
	for _, c := range []struct {
		name, text, lines string
		signatures        int
	}{
		{"one line", "text\n", line("a", 64), 1},
		{"several keys", "text\n", line("a", 64) + line("b", 72) + line("c", 1), 3},
		{"empty lines in the text", "a\n\nb\n\n", line("a", 64), 1},
		{"a signature line in the text", "a\n\n" + line("a", 64), line("a", 64), 1},
		{"other alphabets", "ü\n", line("ü", 64), 1},
		{"the maximum of lines", "text\n", lines(MaxSignatures), MaxSignatures},
		{"16 of the largest signatures", "text\n", strings.ReplaceAll(lines(16), base64.StdEncoding.EncodeToString(make([]byte, 68)), base64.StdEncoding.EncodeToString(make([]byte, 5000))), 16},
	} {
		input := c.text + "\n" + c.lines
		got, err := ParseNote([]byte(input))
		if err != nil || got.Text != c.text || len(got.Signatures) != c.signatures {
			t.Errorf("%s: got text %q, %d lines, %v", c.name, got.Text, len(got.Signatures), err)
		}
		if !bytes.Equal(got.Bytes(), []byte(input)) {
			t.Errorf("%s: Bytes differs from what was parsed", c.name)
		}
	}
}

func TestParseNoteRefuses(t *testing.T) {
	good := "a\n1\nb\n\n" + line("name", 64)
	if _, err := ParseNote([]byte(good)); err != nil {
		t.Fatal(err)
	}
	b64 := base64.StdEncoding.EncodeToString(make([]byte, 68)) // ends in "AAA="
	withBits := strings.TrimSuffix(b64, "A=") + "B="
	for name, bad := range map[string]string{
		"empty":                            "",
		"only line ends":                   "\n\n\n",
		"text alone":                       "a\n1\nb\n",
		"no signature line":                "a\n1\nb\n\n",
		"no empty line":                    "a\n1\nb\n" + line("name", 64),
		"no text":                          "\n" + line("name", 64),
		"last line end missing":            strings.TrimSuffix(good, "\n"),
		"trailing line":                    good + "x\n",
		"trailing empty line":              good + "\n",
		"carriage returns":                 strings.ReplaceAll(good, "\n", "\r\n"),
		"carriage return at the end":       strings.TrimSuffix(good, "\n") + "\r\n",
		"tab":                              strings.Replace(good, "1", "\t", 1),
		"zero byte":                        strings.Replace(good, "1", "\x00", 1),
		"not UTF-8":                        strings.Replace(good, "1", "\xff", 1),
		"hyphen instead of the dash":       strings.Replace(good, "—", "-", 1),
		"en dash instead of the dash":      strings.Replace(good, "—", "–", 1),
		"no space after the dash":          strings.Replace(good, "— ", "—", 1),
		"two spaces after the dash":        strings.Replace(good, "— ", "—  ", 1),
		"two spaces before the signature":  strings.Replace(good, "name ", "name  ", 1),
		"space after the signature":        strings.TrimSuffix(good, "\n") + " \n",
		"name empty":                       strings.Replace(good, "name", "", 1),
		"name with a plus":                 strings.Replace(good, "name", "na+me", 1),
		"name with a space":                strings.Replace(good, "name", "na me", 1),
		"name with a wide space":           strings.Replace(good, "name", "na\u2003me", 1),
		"name with a no-break space":       strings.Replace(good, "name", "na\u00a0me", 1),
		"name with DEL":                    strings.Replace(good, "name", "na\x7fme", 1),
		"signature missing":                "a\n\n— name\n",
		"signature empty":                  "a\n\n— name \n",
		"signature without padding":        strings.Replace(good, b64, strings.TrimRight(b64, "="), 1),
		"signature with more padding":      strings.Replace(good, b64, b64+"=", 1),
		"signature with bits in padding":   strings.Replace(good, b64, withBits, 1),
		"signature in the URL alphabet":    strings.Replace(good, b64, strings.Replace(b64, "AAAA", "-_AA", 1), 1),
		"signature in hex":                 "a\n\n— name " + strings.Repeat("00", 68) + "g\n",
		"key hash alone":                   "a\n\n" + line("name", 0),
		"key hash cut":                     "a\n\n— name AAAA\n",
		"second line of a key":             good + line("name", 64),
		"second line of a key, other form": good + line("other", 64) + line("name", 72),
		"one line too many":                "a\n\n" + lines(MaxSignatures+1),
		"too large":                        strings.Repeat("x", MaxNote) + good,
	} {
		if got, err := ParseNote([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestNoteWithOneNameAndTwoHashes(t *testing.T) {
	one := newSigner(t, "log.example/o/one")
	private, err := edkey.PrivateFromSeed(make([]byte, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	two, err := NewSignerKey("log.example/o/one", private)
	if err != nil {
		t.Fatal(err)
	}
	n, err := Note{Text: "text\n"}.Add(one.signatureOver("text\n"), two.signatureOver("text\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []SignerKey{one, two} {
		if err := n.Verify(key.Verifier()); err != nil {
			t.Error(err)
		}
	}
}

func TestNoteVerifyRefuses(t *testing.T) {
	one, two := newSigner(t, "log.example/o/one"), newSigner(t, "log.example/o/two")
	const text = "text\n"
	good := one.signatureOver(text)
	wrong := func(change func(*Signature)) Note {
		sig := good
		sig.Value = slices.Clone(good.Value)
		change(&sig)
		return Note{Text: text, Signatures: []Signature{sig}}
	}
	for name, n := range map[string]Note{
		"no line":               {Text: text},
		"other text":            {Text: "test\n", Signatures: []Signature{good}},
		"other key's line":      {Text: text, Signatures: []Signature{two.signatureOver(text)}},
		"other name":            wrong(func(s *Signature) { s.Name = "log.example/o/two" }),
		"other key hash":        wrong(func(s *Signature) { s.KeyHash ^= 1 }),
		"signature bit changed": wrong(func(s *Signature) { s.Value[63] ^= 1 }),
		"signature cut":         wrong(func(s *Signature) { s.Value = s.Value[:63] }),
		"signature longer":      wrong(func(s *Signature) { s.Value = append(s.Value, 0) }),
		"timestamp before it":   wrong(func(s *Signature) { s.Value = append(make([]byte, 8), s.Value...) }),
		"the other's signature": wrong(func(s *Signature) { s.Value = two.signatureOver(text).Value }),
	} {
		if err := n.Verify(one.Verifier()); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: got %v, want %v", name, err, ErrSignature)
		}
		if err := n.Verify(VerifierKey{}); !errors.Is(err, ErrSignature) {
			t.Errorf("%s, no key: got %v, want %v", name, err, ErrSignature)
		}
	}
}

func TestNoteAdd(t *testing.T) {
	one, witness := newSigner(t, "log.example/o/one"), newSigner(t, "witness.example/w")
	n, err := Note{Text: "text\n"}.Add(one.signatureOver("text\n"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := n.Add(witness.signatureOver("text\n"))
	if err != nil || len(more.Signatures) != 2 || len(n.Signatures) != 1 {
		t.Fatalf("got %d lines from %d, %v", len(more.Signatures), len(n.Signatures), err)
	}
	if !bytes.HasPrefix(more.Bytes(), n.Bytes()) {
		t.Error("Add changed the original note")
	}
	sig := witness.signatureOver("text\n")
	for name, bad := range map[string]Signature{
		"second line of a key": one.signatureOver("text\n"),
		"line end in the name": {Name: "a " + strings.TrimSpace(line("x", 64)[6:]) + "\n— b", Value: sig.Value},
		"space in the name":    {Name: "a b", Value: sig.Value},
		"no name":              {Value: sig.Value},
		"no value":             {Name: "a"},
		"too large":            {Name: "a", Value: make([]byte, MaxNote)},
	} {
		if _, err := n.Add(bad); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, want %v", name, err, ErrMalformed)
		}
	}
	for _, text := range []string{"", "no line end", "text\n\n" + line("a", 64) + "\n" + line("b", 64) + "x"} {
		if _, err := (Note{Text: text}).Add(sig); !errors.Is(err, ErrMalformed) {
			t.Errorf("text %q: got %v, want %v", text, err, ErrMalformed)
		}
	}
	if _, err := (Note{Text: "text\n"}).Add(); !errors.Is(err, ErrMalformed) {
		t.Errorf("no signature at all: got %v, want %v", err, ErrMalformed)
	}
}

// golang.org/x/mod accepts what we accept, and we write what we read.
func FuzzParseNote(f *testing.F) {
	f.Add([]byte("text\n\n" + line("a", 64)))
	f.Add([]byte("a\n\nb\n\n" + line("a", 64) + line("b", 1)))
	f.Add([]byte(readVector(f).Checkpoint))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := ParseNote(b)
		if err != nil {
			return
		}
		if got := n.Bytes(); !bytes.Equal(got, b) {
			t.Errorf("%q is written %q", b, got)
		}
		_, err = note.Open(b, note.VerifierList())
		var unverified *note.UnverifiedNoteError
		if !errors.As(err, &unverified) || unverified.Note.Text != n.Text {
			t.Errorf("%q: x/mod: %v", b, err)
		}
	})
}

func TestSignNote(t *testing.T) {
	private, err := edkey.PrivateFromSeed(make([]byte, edkey.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	key, err := NewSignerKey("signer.example", private)
	if err != nil {
		t.Fatal(err)
	}
	n, err := key.SignNote("one\n\ntwo\n")
	if err != nil {
		t.Fatal(err)
	}
	read, err := ParseNote(n.Bytes())
	if err != nil || read.Text != "one\n\ntwo\n" || read.Verify(key.Verifier()) != nil {
		t.Errorf("got %+v, %v", read, err)
	}
	for name, text := range map[string]string{"no end": "one", "empty": "", "control": "a\x01\n", "not UTF-8": "\xff\n", "CR": "a\r\n"} {
		if _, err := key.SignNote(text); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
}
