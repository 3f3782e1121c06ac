package tlog

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/transparency-dev/formats/proof"

	"github.com/agentledger/agentledger/id"
)

// newProof returns a proof of leaf 2 of 5.
func newProof(t testing.TB, key SignerKey, extra []byte) (Proof, *oracle) {
	t.Helper()
	o := newOracle(5)
	signed, err := key.Sign(Checkpoint{Origin: id.Origin(key.Verifier().Name()), Size: 5, Root: o.root(0, 5)})
	if err != nil {
		t.Fatal(err)
	}
	return Proof{Extra: extra, Index: 2, Hashes: o.path(2, 0, 5), Checkpoint: signed}, o
}

func equal(p, q Proof) bool {
	return bytes.Equal(p.Extra, q.Extra) && p.Index == q.Index && slices.Equal(p.Hashes, q.Hashes) && bytes.Equal(p.Checkpoint, q.Checkpoint)
}

// theirs parses a proof with transparency-dev/formats.
func theirs(text []byte) (Proof, error) {
	var p proof.TLogProof
	if err := p.Unmarshal(text); err != nil {
		return Proof{}, err
	}
	q := Proof{Extra: p.ExtraData, Index: id.Index(p.Index), Checkpoint: p.Checkpoint}
	for _, h := range p.Hashes {
		q.Hashes = append(q.Hashes, id.Hash(h))
	}
	return q, nil
}

func arrays(hashes []id.Hash) (all [][hashSize]byte) {
	for _, h := range hashes {
		all = append(all, h)
	}
	return all
}

func TestProofText(t *testing.T) {
	key := newSigner(t, "log.example/o/one")
	for _, extra := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte{0xff}, 9000)} {
		p, o := newProof(t, key, extra)
		got, err := ParseProof(p.Text())
		if err != nil || !equal(got, p) {
			t.Fatalf("%d bytes of extra data: got %v, %v, want %v", len(extra), got, err, p)
		}
		if want := (proof.TLogProof{Index: 2, Hashes: arrays(p.Hashes), Checkpoint: p.Checkpoint, ExtraData: p.Extra}).Marshal(); !bytes.Equal(p.Text(), want) {
			t.Errorf("%d bytes of extra data: got %q, theirs is %q", len(extra), p.Text(), want)
		}
		if got, err := theirs(p.Text()); err != nil || !equal(got, p) {
			t.Errorf("%d bytes of extra data: theirs %v, %v, want %v", len(extra), got, err, p)
		}
		if c, err := got.Check(o.leaves[2], key.Verifier()); err != nil || c.Size != 5 {
			t.Errorf("check: got %v, %v", c, err)
		}
	}
	p, _ := newProof(t, key, []byte("x"))
	if want := "c2sp.org/tlog-proof@v1\nextra eA==\nindex 2\n"; !bytes.HasPrefix(p.Text(), []byte(want)) {
		t.Errorf("got %q, want it to begin with %q", p.Text(), want)
	}
}

func TestProofOfTheOnlyLeaf(t *testing.T) {
	key := newSigner(t, "log.example/o/one")
	leaf := LeafHash([]byte("only"))
	signed, err := key.Sign(Checkpoint{Origin: "log.example/o/one", Size: 1, Root: leaf})
	if err != nil {
		t.Fatal(err)
	}
	text := Proof{Checkpoint: signed}.Text()
	if want := "c2sp.org/tlog-proof@v1\nindex 0\n\n" + string(signed); string(text) != want {
		t.Errorf("got %q, want %q", text, want)
	}
	p, err := ParseProof(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Check(leaf, key.Verifier()); err != nil {
		t.Error(err)
	}
}

func TestProofCheckRefuses(t *testing.T) {
	key, other := newSigner(t, "log.example/o/one"), newSigner(t, "log.example/o/two")
	good, o := newProof(t, key, nil)
	for _, c := range []struct {
		name string
		make func(p *Proof)
		leaf id.Hash
		key  SignerKey
		want error
	}{
		{"another leaf", func(*Proof) {}, o.leaves[1], key, ErrProof},
		{"another index", func(p *Proof) { p.Index = 3 }, o.leaves[2], key, ErrProof},
		{"hash missing", func(p *Proof) { p.Hashes = p.Hashes[1:] }, o.leaves[2], key, ErrProof},
		{"another log's key", func(*Proof) {}, o.leaves[2], other, ErrSignature},
		{"checkpoint changed", func(p *Proof) { p.Checkpoint = bytes.Replace(p.Checkpoint, []byte("\n5\n"), []byte("\n6\n"), 1) }, o.leaves[2], key, ErrSignature},
		{"no checkpoint", func(p *Proof) { p.Checkpoint = nil }, o.leaves[2], key, ErrMalformed},
	} {
		p := good
		c.make(&p)
		if got, err := p.Check(c.leaf, c.key.Verifier()); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

func TestParseProofRefuses(t *testing.T) {
	p, _ := newProof(t, newSigner(t, "log.example/o/one"), []byte("extra"))
	good := string(p.Text())
	hash := root + "\n"
	with := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for name, bad := range map[string]string{
		"empty":                       "",
		"header alone":                proofHeader,
		"version 2":                   with("@v1", "@v2"),
		"space after the header":      with("@v1", "@v1 "),
		"line before":                 "\n" + good,
		"carriage returns":            strings.ReplaceAll(good, "\n", "\r\n"),
		"carriage return after index": with("index 2", "index 2\r"),
		"empty extra line":            with("extra ZXh0cmE=", "extra "),
		"extra without padding":       with("ZXh0cmE=", "ZXh0cmE"),
		"extra with bits in padding":  with("ZXh0cmE=", "ZXh0cmF="),
		"extra twice":                 with("extra ZXh0cmE=\n", "extra ZXh0cmE=\nextra ZXh0cmE=\n"),
		"extra after the index":       with("extra ZXh0cmE=\nindex 2\n", "index 2\nextra ZXh0cmE=\n"),
		"index missing":               with("index 2\n", ""),
		"index empty":                 with("index 2", "index "),
		"index with a zero":           with("index 2", "index 02"),
		"index with a plus":           with("index 2", "index +2"),
		"index negative":              with("index 2", "index -2"),
		"index with two spaces":       with("index 2", "index  2"),
		"index beyond the tree":       with("index 2", "index 5"),
		"index 2^63":                  with("index 2", "index 9223372036854775808"),
		"hash cut":                    with("index 2\n", "index 2\n"+root[:40]+"\n"),
		"hash with a space":           with("index 2\n", "index 2\n "+hash),
		"hash with bits in padding":   with("index 2\n", "index 2\n"+strings.Replace(hash, "TNE=", "TNF=", 1)),
		"64 hashes":                   with("index 2\n", "index 2\n"+strings.Repeat(hash, 61)),
		"no empty line":               with("\n\nlog", "\nlog"),
		"two empty lines":             with("\n\nlog", "\n\n\nlog"),
		"no checkpoint":               good[:strings.Index(good, "\n\n")+2],
		"end at a hash":               good[:strings.Index(good, "\n\n")],
		"checkpoint cut":              strings.TrimSuffix(good, "\n"),
		"checkpoint with a line more": with("\n5\n", "\n5\n\n"),
		"too large":                   with("ZXh0cmE=", strings.Repeat("AAAA", MaxProof/4)),
	} {
		if got, err := ParseProof([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// transparency-dev/formats accepts what we accept and reads the same from it.
func FuzzParseProof(f *testing.F) {
	key := readVector(f).signer(f)
	for _, extra := range []string{"", "extra"} {
		p, _ := newProof(f, key, []byte(extra))
		f.Add(p.Text())
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProof(text)
		if err != nil {
			return
		}
		if got := p.Text(); !bytes.Equal(got, text) {
			t.Errorf("%q is written %q", text, got)
		}
		if bytes.ContainsFunc(text, func(r rune) bool { return r == '\r' }) {
			t.Errorf("%q: carriage return", text)
		}
		// The line reader of the library stops at 64 KiB.
		if q, err := theirs(text); len(text) < 60<<10 && (err != nil || !equal(p, q)) {
			t.Errorf("%q: ours %v, theirs %v, %v", text, p, q, err)
		}
	})
}
