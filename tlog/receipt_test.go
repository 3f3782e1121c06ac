package tlog

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"

	"github.com/agentledger/agentledger/id"
)

// newReceipt returns a receipt of the leaf at index of a tree, and the tree.
func newReceipt(t testing.TB, key SignerKey, index, size int) (Receipt, *oracle) {
	t.Helper()
	o := newOracle(size)
	c := Checkpoint{Origin: id.Origin(key.Verifier().Name()), Size: id.Index(size), Root: o.root(0, size)}
	r, err := key.SignReceipt(c, id.Index(index), o.path(index, 0, size))
	if err != nil {
		t.Fatal(err)
	}
	return r, o
}

// claims is the CWT claims set of a protected header.
type claims struct {
	Issuer  string `cbor:"1,keyasint"`
	Subject string `cbor:"2,keyasint"`
}

type protectedHeader struct {
	Algorithm int    `cbor:"1,keyasint"`
	KeyID     []byte `cbor:"4,keyasint"`
	Claims    claims `cbor:"15,keyasint"`
	Structure int    `cbor:"395,keyasint"`
}

type unprotectedHeader struct {
	Proofs struct {
		Inclusion [][]byte `cbor:"-1,keyasint"`
	} `cbor:"396,keyasint"`
}

type sign1 struct {
	_           struct{} `cbor:",toarray"`
	Protected   []byte
	Unprotected unprotectedHeader
	Payload     []byte
	Signature   []byte
}

type inclusionProof struct {
	_           struct{} `cbor:",toarray"`
	Size, Index uint64
	Path        [][]byte
}

// theirReceipt reads a receipt with fxamacker/cbor: strictly, so that unknown members, other tags and bytes after an
// item are errors.
func theirReceipt(t testing.TB, b []byte) (header protectedHeader, proof inclusionProof, outer sign1, err error) {
	t.Helper()
	strict, err := cbor.DecOptions{DupMapKey: cbor.DupMapKeyEnforcedAPF, ExtraReturnErrors: cbor.ExtraDecErrorUnknownField,
		IndefLength: cbor.IndefLengthForbidden}.DecMode()
	if err != nil {
		t.Fatal(err)
	}
	var tagged cbor.RawTag
	if err = strict.Unmarshal(b, &tagged); err != nil || tagged.Number != 18 {
		return header, proof, outer, errors.Join(err, errors.New("no COSE_Sign1"))
	}
	if err = strict.Unmarshal(tagged.Content, &outer); err != nil {
		return header, proof, outer, err
	}
	if err = strict.Unmarshal(outer.Protected, &header); err != nil {
		return header, proof, outer, err
	}
	if len(outer.Unprotected.Proofs.Inclusion) != 1 {
		return header, proof, outer, errors.New("no single proof")
	}
	return header, proof, outer, strict.Unmarshal(outer.Unprotected.Proofs.Inclusion[0], &proof)
}

// theirSigned returns the Sig_structure of RFC 9052 section 4.4 as fxamacker/cbor writes it.
func theirSigned(t testing.TB, protected []byte, root id.Hash) []byte {
	t.Helper()
	b, err := cbor.Marshal([]any{"Signature1", protected, []byte{}, root[:]})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Trees and indices on both sides of each width of an integer in CBOR, with origins of all lengths of a head.
func TestReceiptIsTheOneOfRFC9942(t *testing.T) {
	for _, origin := range []string{"l", "log.example/o/one", strings.Repeat("é", 120), strings.Repeat("x", MaxName)} {
		key := newSigner(t, origin)
		for _, tree := range [][2]int{{0, 2}, {1, 2}, {4, 5}, {22, 23}, {23, 24}, {24, 25}, {255, 256}, {256, 257}, {0, 300}, {299, 300}} {
			index, size := tree[0], tree[1]
			r, o := newReceipt(t, key, index, size)
			header, proof, outer, err := theirReceipt(t, r.Bytes())
			if err != nil {
				t.Fatalf("%d of %d: %v", index, size, err)
			}
			if header.Algorithm != -8 || header.Structure != 1 || header.Claims.Issuer != origin ||
				header.Claims.Subject != "tree "+strconv.Itoa(size) || KeyHash(be32(header.KeyID)) != key.Verifier().Hash() {
				t.Errorf("%d of %d: protected header: %+v", index, size, header)
			}
			if proof.Size != uint64(size) || proof.Index != uint64(index) || len(proof.Path) != len(r.Hashes) || outer.Payload != nil {
				t.Errorf("%d of %d: got proof %+v, payload %v", index, size, proof, outer.Payload)
			}
			for i, h := range proof.Path {
				if !bytes.Equal(h, r.Hashes[i][:]) {
					t.Errorf("%d of %d: hash %d: got %x, want %x", index, size, i, h, r.Hashes[i])
				}
			}
			public := key.Verifier().Public().Bytes()
			if !ed25519.Verify(public[:], theirSigned(t, outer.Protected, o.root(0, size)), outer.Signature) {
				t.Errorf("%d of %d: the signature is not over the Sig_structure", index, size)
			}
			got, err := ParseReceipt(r.Bytes())
			if err != nil || !sameReceipt(got, r) {
				t.Fatalf("%d of %d: got %v, %v, want %v", index, size, got, err, r)
			}
			want := Checkpoint{Origin: id.Origin(origin), Size: id.Index(size), Root: o.root(0, size)}
			if c, err := got.Check(o.leaves[index], key.Verifier()); err != nil || c != want {
				t.Errorf("%d of %d: check: got %v, %v, want %v", index, size, c, err, want)
			}
		}
	}
}

func be32(b []byte) (n uint32) {
	for _, x := range b {
		n = n<<8 | uint32(x)
	}
	return n
}

func sameReceipt(p, q Receipt) bool {
	return p.Origin == q.Origin && p.KeyHash == q.KeyHash && p.Size == q.Size && p.Index == q.Index &&
		slices.Equal(p.Hashes, q.Hashes) && p.Signature == q.Signature
}

// The receipt of the vector is the example of docs/spec/cose-receipts.md.
func TestReceiptVector(t *testing.T) {
	v := readVector(t)
	raw, err := hex.DecodeString(v.Receipt)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseReceipt(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := Checkpoint{Origin: v.Origin, Size: 2, Root: v.RootHash}
	if c, err := r.Check(LeafHash([]byte(v.Entries[1].Entry)), v.signer(t).Verifier()); err != nil || c != want {
		t.Errorf("got %v, %v, want %v", c, err, want)
	}
	if made, err := v.signer(t).SignReceipt(want, 1, []id.Hash{v.Entries[0].EventHash}); err != nil || !bytes.Equal(made.Bytes(), raw) {
		t.Errorf("made: got %x, %v", made.Bytes(), err)
	}
	page, err := os.ReadFile("../docs/spec/cose-receipts.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(page)), "")
	for _, part := range []string{v.Receipt, hex.EncodeToString(r.signedMessage(v.RootHash)), v.LogKey.VKey, strings.Join(strings.Fields(v.Entries[1].Entry), "")} {
		if !strings.Contains(text, part) {
			t.Errorf("the page does not have %s", part)
		}
	}
}

// A signature of one kind must be none of the other kinds that a log's or witness's key makes: the signed bytes differ
// for all inputs, not only for these.
func TestReceiptSignsNoText(t *testing.T) {
	key := newSigner(t, "log.example/o/one")
	r, o := newReceipt(t, key, 2, 5)
	c := Checkpoint{Origin: r.Origin, Size: 5, Root: o.root(0, 5)}
	message := r.signedMessage(c.Root)
	if utf8.Valid(message) || utf8.RuneStart(message[0]) {
		t.Errorf("a signed text can begin like %x", message[:4])
	}
	if message[0] == 's' { // "subtree/v1" of ML-DSA-44 cosignatures, which other keys make
		t.Error("begins like a cosignature")
	}
	forged := Note{Text: c.Text(), Signatures: []Signature{{Name: key.Verifier().Name(), KeyHash: key.Verifier().Hash(), Value: r.Signature[:]}}}
	if _, err := OpenCheckpoint(forged.Bytes(), key.Verifier()); !errors.Is(err, ErrSignature) {
		t.Errorf("a checkpoint with the signature of a receipt: got %v", err)
	}
	signed, err := key.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	n, err := ParseNote(signed)
	if err != nil {
		t.Fatal(err)
	}
	copy(r.Signature[:], n.Signatures[0].Value)
	if _, err := r.Check(o.leaves[2], key.Verifier()); !errors.Is(err, ErrSignature) {
		t.Errorf("a receipt with the signature of a checkpoint: got %v", err)
	}
}

func TestSignReceiptRefuses(t *testing.T) {
	key := newSigner(t, "log.example/o/one")
	good := Checkpoint{Origin: "log.example/o/one", Size: 2}
	one := make([]id.Hash, 1)
	for _, c := range []struct {
		name   string
		tree   Checkpoint
		index  id.Index
		hashes []id.Hash
	}{
		{"another origin", Checkpoint{Origin: "log.example/o/two", Size: 2}, 0, one},
		{"index of the tree's end", good, 2, one},
		{"empty tree", Checkpoint{Origin: good.Origin}, 0, one},
		{"no path, as of the only leaf", Checkpoint{Origin: good.Origin, Size: 1}, 0, nil},
		{"path above the limit", good, 0, make([]id.Hash, maxHashes+1)},
		{"size above the limit", Checkpoint{Origin: good.Origin, Size: MaxSize + 1}, 0, one},
	} {
		if r, err := key.SignReceipt(c.tree, c.index, c.hashes); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", c.name, r, err)
		}
	}
	if r, err := key.SignReceipt(Checkpoint{Origin: good.Origin, Size: MaxSize}, MaxSize-1, make([]id.Hash, maxHashes)); err != nil || len(r.Bytes()) > MaxReceipt {
		t.Errorf("the largest: got %d bytes, %v", len(r.Bytes()), err)
	}
}

func TestReceiptCheckRefuses(t *testing.T) {
	key, other := newSigner(t, "log.example/o/one"), newSigner(t, "log.example/o/two")
	good, o := newReceipt(t, key, 2, 5)
	for _, c := range []struct {
		name string
		make func(r *Receipt)
		leaf int
		key  SignerKey
		want error
	}{
		{"another leaf", func(*Receipt) {}, 1, key, ErrSignature},
		{"another index with the same path", func(r *Receipt) { r.Index = 3 }, 2, key, ErrSignature},
		{"another index with another path", func(r *Receipt) { r.Index = 4 }, 2, key, ErrProof},
		{"another size with a path of the same shape", func(r *Receipt) { r.Size = 6 }, 2, key, ErrSignature},
		{"hash missing", func(r *Receipt) { r.Hashes = r.Hashes[1:] }, 2, key, ErrProof},
		{"hash changed", func(r *Receipt) { r.Hashes = slices.Clone(r.Hashes); r.Hashes[0][0]++ }, 2, key, ErrSignature},
		{"signature changed", func(r *Receipt) { r.Signature[0]++ }, 2, key, ErrSignature},
		{"another log's key", func(*Receipt) {}, 2, other, ErrSignature},
		{"another log's name", func(r *Receipt) { r.Origin = "log.example/o/two" }, 2, key, ErrSignature},
		{"another key's id", func(r *Receipt) { r.KeyHash++ }, 2, key, ErrSignature},
	} {
		r := good
		c.make(&r)
		if got, err := r.Check(o.leaves[c.leaf], c.key.Verifier()); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, %v, want %v", c.name, got, err, c.want)
		}
	}
}

func TestParseReceiptRefuses(t *testing.T) {
	r, _ := newReceipt(t, newSigner(t, "log.example/o/one"), 2, 5)
	good := string(r.Bytes())
	with := func(old, new string) string {
		t.Helper()
		if strings.Count(good, old) != 1 {
			t.Fatalf("%x is in the receipt %d times", old, strings.Count(good, old))
		}
		return strings.Replace(good, old, new, 1)
	}
	header, proof := appendString(nil, cborBytes, r.protected()), "\x58\x6a\x83\x05\x02\x83"
	for name, bad := range map[string]string{
		"nothing":                    "",
		"tag missing":                good[1:],
		"another tag":                "\xd1" + good[1:],
		"longer tag":                 "\xd8\x12" + good[1:],
		"array of indefinite length": with("\xd2\x84", "\xd2\x9f") + "\xff",
		"bytes after it":             good + "\x00",
		"end missing":                good[:len(good)-1],
		"alg ES256":                  with("\xa4\x01\x27", "\xa4\x01\x26"),
		"vds 2":                      with(headerVDS, "\x19\x01\x8b\x02"),
		"longer kid":                 with("\x04\x44", "\x04\x45"),
		"claims in another order":    with("\x0f\xa2\x01", "\x0f\xa2\x02"),
		"size with a zero":           with("\x66tree 5", "\x67tree 05"),
		"another size":               with("\x66tree 5", "\x66tree 6"),
		"no tree":                    with("\x66tree 5", "\x66twig 5"),
		"origin with a space":        with("log.example", "log example"),
		"header with a long length":  with(string(header[:2]), "\x59\x00"+string(header[1:2])),
		"consistency proof":          with("\xa1\x20\x81", "\xa1\x21\x81"),
		"label of the draft":         with("\x19\x01\x8c", "\x38\xdd"), // -222
		"two proofs":                 with("\xa1\x20\x81", "\xa1\x20\x82"),
		"size of two bytes":          with(proof, "\x58\x6b\x83\x18\x05\x02\x83"),
		"index of the tree's end":    with(proof, "\x58\x6a\x83\x05\x05\x83"),
		"empty path":                 with(proof, "\x58\x6a\x83\x05\x02\x80"),
		"endless path":               with(proof, "\x58\x72\x83\x05\x02\x9b\xff\xff\xff\xff\xff\xff\xff\xff"),
		"reserved head":              with(proof, "\x58\x6a\x83\x05\x02\x9c"),
		"attached payload":           with("\xf6\x58\x40", "\x40\x58\x40"),
		"short signature":            with("\xf6\x58\x40", "\xf6\x58\x3f"),
		"too large":                  good + strings.Repeat("\x00", MaxReceipt),
	} {
		if got, err := ParseReceipt([]byte(bad)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	for i := range len(good) {
		if got, err := ParseReceipt([]byte(good[:i])); !errors.Is(err, ErrMalformed) {
			t.Errorf("the first %d bytes: got %v, %v", i, got, err)
		}
	}
}

// fxamacker/cbor accepts what we accept and reads the same from it.
func FuzzParseReceipt(f *testing.F) {
	key := readVector(f).signer(f)
	for _, tree := range [][2]int{{0, 2}, {2, 5}, {299, 300}} {
		r, _ := newReceipt(f, key, tree[0], tree[1])
		f.Add(r.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseReceipt(b)
		if err != nil {
			return
		}
		if !IsReceipt(b) || !bytes.Equal(r.Bytes(), b) {
			t.Errorf("%x is written %x", b, r.Bytes())
		}
		header, proof, outer, err := theirReceipt(t, b)
		if err != nil || header.Claims.Issuer != string(r.Origin) || proof.Size != uint64(r.Size) || proof.Index != uint64(r.Index) ||
			len(proof.Path) != len(r.Hashes) || !bytes.Equal(outer.Signature, r.Signature[:]) {
			t.Errorf("%x: ours %v, theirs %+v %+v, %v", b, r, header, proof, err)
		}
	})
}

func BenchmarkSignReceipt(b *testing.B) {
	key := newSigner(b, "log.example/o/one")
	o := newOracle(1000)
	c, path := Checkpoint{Origin: "log.example/o/one", Size: 1000, Root: o.root(0, 1000)}, o.path(500, 0, 1000)
	b.ReportAllocs()
	for b.Loop() {
		r, err := key.SignReceipt(c, 500, path)
		if err != nil {
			b.Fatal(err)
		}
		_ = r.Bytes()
	}
}
