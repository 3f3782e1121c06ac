package edkey

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"filippo.io/edwards25519"
)

var (
	signatures     = flag.Int("signatures", 10_000, "number of signatures that tables and crypto/ed25519 judge")
	signaturesSeed = flag.Uint64("signatures-seed", 25519, "another number gives other signatures")
)

// plainVerify is the strict rule by crypto/ed25519 alone, for bytes that may be an invalid key.
func plainVerify(key, message, sig []byte) bool {
	return len(sig) == SignatureSize && !smallOrder(sig[:32]) && ed25519.Verify(key, message, sig)
}

// tables are the narrow and the wide table of a key.
type tables [2]*Table

// newTables returns the narrow and the wide table of a key.
func newTables(base *Base, k Public) (both tables, err error) {
	narrow, err := base.NewTable(k)
	wide, wideErr := base.NewWideTable(k)
	return tables{narrow, wide}, errors.Join(err, wideErr)
}

// judge compares the results of both tables and crypto/ed25519 for one signature, and returns the result.
func judge(t *testing.T, both tables, message, sig []byte) bool {
	t.Helper()
	key := both[0].Public().Bytes()
	want := plainVerify(key[:], message, sig)
	for _, table := range both {
		if got := table.Verify(message, sig); got != want {
			t.Fatalf("key %x, wide %v, message %x, signature %x: got %v, want %v", key, table.IsWide(), message, sig, got, want)
		}
	}
	return want
}

// mutations change a good signature or its message. Each is named by its change.
var mutations = []struct {
	name   string
	change func(r *rand.Rand, message, sig []byte) ([]byte, []byte)
}{
	{"none", func(_ *rand.Rand, m, s []byte) ([]byte, []byte) { return m, s }},
	{"none, long message", func(_ *rand.Rand, m, s []byte) ([]byte, []byte) { return m, s }},
	{"bit of the signature", func(r *rand.Rand, m, s []byte) ([]byte, []byte) {
		s[r.IntN(64)] ^= 1 << r.IntN(8)
		return m, s
	}},
	{"bit of the message", func(r *rand.Rand, m, s []byte) ([]byte, []byte) {
		m[r.IntN(len(m))] ^= 1 << r.IntN(8)
		return m, s
	}},
	{"S plus L", func(_ *rand.Rand, m, s []byte) ([]byte, []byte) { return m, addOrder(s) }},
	{"L minus S", func(_ *rand.Rand, m, s []byte) ([]byte, []byte) {
		scalar, _ := new(edwards25519.Scalar).SetCanonicalBytes(s[32:])
		return m, append(s[:32:32], scalar.Negate(scalar).Bytes()...)
	}},
	{"S random", func(r *rand.Rand, m, s []byte) ([]byte, []byte) { return m, append(s[:32:32], randomBytes(r, 32)...) }},
	{"R random", func(r *rand.Rand, m, s []byte) ([]byte, []byte) { return m, append(randomBytes(r, 32), s[32:]...) }},
	{"R not canonical", func(r *rand.Rand, m, s []byte) ([]byte, []byte) {
		y := bytes.Repeat([]byte{0xff}, 32) // y between p and 2^255-1
		y[0], y[31] = byte(0xed+r.IntN(0x13)), byte(0x7f|r.IntN(2)<<7)
		return m, append(y, s[32:]...)
	}},
	{"all zero", func(_ *rand.Rand, m, _ []byte) ([]byte, []byte) { return m, make([]byte, 64) }},
	{"all ones", func(_ *rand.Rand, m, _ []byte) ([]byte, []byte) { return m, bytes.Repeat([]byte{0xff}, 64) }},
}

func randomBytes(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// A table agrees with crypto/ed25519 on valid signatures and their mutations, for many keys.
func TestTableAgreesWithLibrary(t *testing.T) {
	base := NewBase()
	const parts = 8
	for part := range uint64(parts) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			judgeMany(t, base, rand.New(rand.NewPCG(part, *signaturesSeed)), *signatures/parts)
		})
	}
}

func judgeMany(t *testing.T, base *Base, r *rand.Rand, n int) {
	accepted := 0
	const ofAKey = 500
	var key Private
	var both tables
	for i := range n {
		if i%ofAKey == 0 {
			var err error
			if key, err = PrivateFromSeed(randomBytes(r, SeedSize)); err != nil {
				t.Fatal(err)
			}
			both = mustTables(t, base, key.Public())
		}
		length := 32
		if i%len(mutations) == 1 {
			length = 1 + r.IntN(1000)
		}
		message := randomBytes(r, length)
		sig := key.Sign(message)
		changed, mutant := mutations[i%len(mutations)].change(r, message, slices.Clone(sig[:]))
		if judge(t, both, changed, mutant) {
			accepted++
		}
	}
	if accepted < n/10 || accepted > n/4 {
		t.Errorf("got %d of %d signatures accepted, want about a sixth", accepted, n)
	}
}

func mustTables(t testing.TB, base *Base, k Public) tables {
	t.Helper()
	both, err := newTables(base, k)
	if err != nil {
		t.Fatal(err)
	}
	return both
}

// Tables also agree with the library on keys that ParsePublic rejects: of small and mixed order, and not canonical.
func TestTablesOfHostileKeys(t *testing.T) {
	r, base := rand.New(rand.NewPCG(2, 25519)), NewBase()
	good := testKey(t, 3)
	forge := newForger(t, good)
	points := torsion(t)
	keys := [][]byte{[]byte(yOrder4Plus), []byte(yOrder1Plus), withSign(yOrder1), withSign(yOrder4Plus)}
	for _, p := range points {
		keys = append(keys, p.Bytes(), new(edwards25519.Point).Add(point(t, forge.public), p).Bytes())
	}
	accepted := 0
	for _, key := range keys {
		public := Stored([32]byte(key))
		if public.IsZero() {
			continue // of order 4; the test below has it
		}
		both := mustTables(t, base, public)
		forge.public = key
		for range 40 {
			nonce := scalarFor(t, new(big.Int).SetBytes(randomBytes(r, 31)))
			at := new(edwards25519.Point).ScalarBaseMult(nonce)
			for _, p := range points {
				message := string(randomBytes(r, 3))
				sig := forge.sign(new(edwards25519.Point).Add(at, p).Bytes(), nonce, message)
				if judge(t, both, []byte(message), sig) {
					accepted++
				}
			}
		}
	}
	if accepted == 0 {
		t.Error("no signature was accepted: the test no longer tests anything")
	}
}

func scalarFor(t testing.TB, n *big.Int) *edwards25519.Scalar {
	t.Helper()
	b := n.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Scalars at the edges of the digits are multiplied as by the library.
func TestEdgeScalars(t *testing.T) {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10) // L
	one := big.NewInt(1)
	scalars := []*big.Int{new(big.Int), one, new(big.Int).Sub(order, one), new(big.Int).Sub(order, big.NewInt(2))}
	for bit := range uint(253) {
		power := new(big.Int).Lsh(one, bit)
		for _, n := range []*big.Int{power, new(big.Int).Sub(power, one), new(big.Int).Add(power, one)} {
			if n.Cmp(order) < 0 {
				scalars = append(scalars, n)
			}
		}
	}
	for _, digit := range []byte{7, 8, 9, 15, 0x77, 0x78, 0x7f, 0x80, 0x81, 0x87, 0x88, 0xff} { // in all places
		scalars = append(scalars, new(big.Int).SetBytes(append([]byte{0x0f}, bytes.Repeat([]byte{digit}, 31)...)))
	}
	base := NewBase()
	both := mustTables(t, base, testKey(t, 5).Public())
	key := point(t, both[0].key.encoded[:])
	for _, n := range scalars {
		s := scalarFor(t, n)
		for _, table := range both {
			var ofKey extended
			ofKey.setIdentity()
			table.addMultiple(&ofKey, [32]byte(s.Bytes()))
			if got, want := ofKey.bytes(), new(edwards25519.Point).ScalarMult(new(edwards25519.Scalar).Negate(s), key).Bytes(); !bytes.Equal(got[:], want) {
				t.Errorf("-%v·A, wide %v: got %x, want %x", n, table.IsWide(), got, want)
			}
		}
		var ofBase extended
		ofBase.setIdentity()
		base.addMultiple(&ofBase, [32]byte(s.Bytes()))
		if got, want := ofBase.bytes(), new(edwards25519.Point).ScalarBaseMult(s).Bytes(); !bytes.Equal(got[:], want) {
			t.Errorf("%v·B: got %x, want %x", n, got, want)
		}
	}
}

// Digits sum to their scalar and are within their ranges.
func TestRecodings(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 25519))
	for i := range 20_000 {
		scalar := [32]byte(randomBytes(r, 32))
		if i%2 == 0 {
			for j := range scalar { // digits where a carry begins or ends
				scalar[j] = []byte{0, 0x07, 0x08, 0x70, 0x77, 0x78, 0x7f, 0x80, 0x87, 0x88, 0xf7, 0xf8, 0xff}[r.IntN(13)]
			}
		}
		scalar[31] &= 0x1f // below 2^253
		reversed := slices.Clone(scalar[:])
		slices.Reverse(reversed)
		want := new(big.Int).SetBytes(reversed)
		half, whole := new(big.Int), new(big.Int)
		for at, digit := range recode16(&scalar) {
			if digit < -8 || digit > 7 {
				t.Fatalf("%x: digit %d is %d", scalar, at, digit)
			}
			half.Add(half, new(big.Int).Lsh(big.NewInt(int64(digit)), uint(4*at)))
		}
		for at, digit := range recode256(&scalar) {
			if digit < -128 || digit > 127 {
				t.Fatalf("%x: digit %d is %d", scalar, at, digit)
			}
			whole.Add(whole, new(big.Int).Lsh(big.NewInt(int64(digit)), uint(8*at)))
		}
		if half.Cmp(want) != 0 || whole.Cmp(want) != 0 {
			t.Fatalf("%x: got %v and %v, want %v", scalar, half, whole, want)
		}
	}
}

// The cases of "Taming the many EdDSAs" (Chalkias, Garillot, Nikolaenko, SSR 2020), as published in
// novifinancial/ed25519-speccheck: small and mixed order, cofactors, S beyond L, R not canonical.
func TestPublishedEdgeCases(t *testing.T) {
	text, err := os.ReadFile("testdata/speccheck.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Message, Pub_Key, Signature string }
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	base := NewBase()
	var got []bool
	for _, c := range cases {
		key, message, sig := unhex(t, c.Pub_Key), unhex(t, c.Message), unhex(t, c.Signature)
		got = append(got, judge(t, mustTables(t, base, Stored([32]byte(key))), message, sig))
	}
	// ParsePublic refuses the keys of cases 1 and 3, which are of small and of mixed order. Other signatures that a
	// lenient verifier accepts need a cofactor, a reduced S or another encoding of R.
	want := []bool{false, true, false, true, false, false, false, false, false, false}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// RFC 8032, section 7.1: tests 1, 2 and 3.
func TestTableKnownAnswers(t *testing.T) {
	base := NewBase()
	for _, c := range []struct{ name, key, message, sig string }{
		{"TEST 1", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
			"e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
		{"TEST 2", "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
			"92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
		{"TEST 3", "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
			"6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
	} {
		if !judge(t, mustTables(t, base, Stored([32]byte(unhex(t, c.key)))), unhex(t, c.message), unhex(t, c.sig)) {
			t.Errorf("%s: rejected", c.name)
		}
	}
}

func TestNoTable(t *testing.T) {
	base := NewBase()
	offCurve := [32]byte{2}
	for name, key := range map[string]Public{"zero value": {}, "no point": Stored(offCurve)} {
		if _, err := base.NewTable(key); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: got %v, want %v", name, err, ErrEncoding)
		}
		if _, err := base.NewWideTable(key); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s, wide: got %v, want %v", name, err, ErrEncoding)
		}
	}
	for _, table := range mustTables(t, base, testKey(t, 1).Public()) {
		for _, n := range []int{0, 1, 32, 63, 65, 128} {
			if table.Verify(nil, make([]byte, n)) {
				t.Errorf("wide %v, signature of %d bytes: accepted", table.IsWide(), n)
			}
		}
	}
}

func FuzzTable(f *testing.F) {
	base := NewBase()
	key := testKey(f, 1)
	sig := key.Sign([]byte("message"))
	public := key.Public().Bytes()
	f.Add(public[:], []byte("message"), sig[:])
	f.Add([]byte(yOrder8), []byte{}, make([]byte, 64))
	f.Fuzz(func(t *testing.T, key, message, sig []byte) {
		if len(key) != PublicSize {
			return
		}
		both, err := newTables(base, Stored([32]byte(key)))
		if err != nil {
			return
		}
		judge(t, both, message, sig)
	})
}
