package tlog

import (
	"errors"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"

	"github.com/agentledger/agentledger/id"
)

// signText signs any text, as a log that violates the rules could.
func signText(key SignerKey, text string) []byte {
	return Note{Text: text, Signatures: []Signature{key.signatureOver(text)}}.Bytes()
}

func TestCheckpointsOfTwoLogs(t *testing.T) {
	one, two := newSigner(t, "log.example/o/one"), newSigner(t, "log.example/o/two")
	for _, c := range []Checkpoint{
		{Origin: "log.example/o/one", Size: 0, Root: EmptyRoot()},
		{Origin: "log.example/o/one", Size: 1, Root: LeafHash(nil)},
		{Origin: "log.example/o/one", Size: MaxSize, Root: id.Hash{}},
	} {
		signed, err := one.Sign(c)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := OpenCheckpoint(signed, one.Verifier()); err != nil || got != c {
			t.Errorf("open: got %v, %v, want %v", got, err, c)
		}
		if got, err := ReadCheckpoint(signed); err != nil || got != c {
			t.Errorf("read: got %v, %v, want %v", got, err, c)
		}
		if again, err := one.Sign(c); err != nil || string(again) != string(signed) {
			t.Errorf("signed again: got %q, %v, want %q", again, err, signed)
		}
		if _, err := OpenCheckpoint(signed, two.Verifier()); !errors.Is(err, ErrSignature) {
			t.Errorf("opened by another log's key: got %v, want %v", err, ErrSignature)
		}
		if _, err := two.Sign(c); !errors.Is(err, ErrMalformed) {
			t.Errorf("signed by another log's key: got %v, want %v", err, ErrMalformed)
		}
		openElsewhere(t, one.Verifier(), c, signed)
	}
	if _, err := OpenCheckpoint(signText(two, "log.example/o/one\n1\n"+root+"\n"), two.Verifier()); !errors.Is(err, ErrSignature) {
		t.Errorf("another log's origin: got %v, want %v", err, ErrSignature)
	}
}

// openElsewhere reads a checkpoint with transparency-dev/formats and x/mod.
func openElsewhere(t *testing.T, key VerifierKey, want Checkpoint, signed []byte) {
	t.Helper()
	verifier, err := note.NewVerifier(key.String())
	if err != nil {
		t.Fatal(err)
	}
	got, rest, _, err := log.ParseCheckpoint(signed, string(want.Origin), verifier)
	if err != nil || len(rest) > 0 || id.Index(got.Size) != want.Size || id.Hash(got.Hash) != want.Root {
		t.Errorf("transparency-dev/formats: got %v, %q, %v, want %v", got, rest, err, want)
	}
}

func TestSignRefuses(t *testing.T) {
	key := newSigner(t, "log.example/o/one")
	for name, c := range map[string]Checkpoint{
		"zero checkpoint":            {},
		"no origin":                  {Size: 1},
		"empty tree of another root": {Origin: "log.example/o/one"},
		"size above the limit":       {Origin: "log.example/o/one", Size: MaxSize + 1},
		"origin with a line end":     {Origin: "log.example/o/one\n", Size: 1},
	} {
		if got, err := key.Sign(c); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

const root = "Uug07CfHVS4j/OngI3zEhxzm9S/r+qrGKL4/uCpFTNE="

// The right key signed all of these.
func TestCheckpointTextRefused(t *testing.T) {
	key := newSigner(t, "log.example/o/one")
	const good = "log.example/o/one\n2\n" + root + "\n"
	if _, err := OpenCheckpoint(signText(key, good), key.Verifier()); err != nil {
		t.Fatal(err)
	}
	with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, text := range map[string]string{
		"extension line":                good + "extension\n",
		"trailing empty line":           good + "\n",
		"empty line before":             "\n" + good,
		"two lines":                     "log.example/o/one\n2\n",
		"no origin":                     with("log.example/o/one", ""),
		"no size":                       with("\n2\n", "\n\n"),
		"size with a zero":              with("\n2\n", "\n02\n"),
		"size 00":                       with("\n2\n", "\n00\n"),
		"size with a plus":              with("\n2\n", "\n+2\n"),
		"size negative":                 with("\n2\n", "\n-2\n"),
		"size with a space":             with("\n2\n", "\n 2\n"),
		"size with a trailing space":    with("\n2\n", "\n2 \n"),
		"size in hex":                   with("\n2\n", "\n0x2\n"),
		"size with an underscore":       with("\n2\n", "\n1_0\n"),
		"size with a point":             with("\n2\n", "\n2.0\n"),
		"size in other digits":          with("\n2\n", "\n٢\n"),
		"size 2^63":                     with("\n2\n", "\n9223372036854775808\n"),
		"size 2^64":                     with("\n2\n", "\n18446744073709551616\n"),
		"size 0 with a root":            with("\n2\n", "\n0\n"),
		"root missing":                  with(root, ""),
		"root without padding":          with(root, strings.TrimSuffix(root, "=")),
		"root with bits in padding":     with("TNE=", "TNF="),
		"root of 31 bytes":              with("TNE=", "TA=="),
		"root of 33 bytes":              with("TNE=", "TNEA"),
		"root in the URL alphabet":      with("j/O", "j_O"),
		"root in hex":                   with(root, strings.Repeat("0", 64)),
		"root with a space":             with(root, " "+root),
		"root with a trailing space":    with(root, root+" "),
		"root with a carriage return":   with(root, root+"\r"),
		"origin with a carriage return": with("one\n", "one\r\n"),
	} {
		if got, err := OpenCheckpoint(signText(key, text), key.Verifier()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: open: got %v, %v", name, got, err)
		}
		if got, err := ReadCheckpoint(signText(key, text)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: read: got %v, %v", name, got, err)
		}
	}
}

func TestReadCheckpointOfAnotherKindOfOrigin(t *testing.T) {
	text := "go.sum database tree\n2\n" + root + "\n"
	got, err := ReadCheckpoint(signText(newSigner(t, "sum.golang.org"), text))
	if err != nil || got.Origin != "go.sum database tree" || got.Text() != text {
		t.Errorf("got %v, %v", got, err)
	}
}

// transparency-dev/formats accepts what we accept and reads the same from it.
func FuzzReadCheckpoint(f *testing.F) {
	f.Add([]byte(readVector(f).Checkpoint))
	f.Add([]byte("o\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n" + line("a", 64)))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ReadCheckpoint(b)
		if err != nil {
			return
		}
		if got, _, _ := strings.Cut(string(b), "\n\n"); got+"\n" != c.Text() {
			t.Errorf("%q is written %q", got, c.Text())
		}
		var theirs log.Checkpoint
		rest, err := theirs.Unmarshal([]byte(c.Text()))
		if err != nil || len(rest) > 0 || theirs.Origin != string(c.Origin) || theirs.Size != uint64(c.Size) || id.Hash(theirs.Hash) != c.Root {
			t.Errorf("%q: ours %v, theirs %v, %v", b, c, theirs, err)
		}
	})
}

func BenchmarkSignCheckpoint(b *testing.B) {
	key := newSigner(b, "log.example/o/one")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := key.Sign(Checkpoint{Origin: "log.example/o/one", Size: 1 << 20}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenCheckpoint(b *testing.B) {
	v := readVector(b)
	key, signed := v.signer(b).Verifier(), []byte(v.Checkpoint)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := OpenCheckpoint(signed, key); err != nil {
			b.Fatal(err)
		}
	}
}
