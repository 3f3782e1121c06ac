package edkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"filippo.io/edwards25519"
)

func testKey(t testing.TB, fill byte) Private {
	t.Helper()
	k, err := PrivateFromSeed(bytes.Repeat([]byte{fill}, SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// torsion returns the eight points of small order. It computes them from a generator,
// not from the package's list.
func torsion(t testing.TB) []*edwards25519.Point {
	t.Helper()
	gen := point(t, []byte(yOrder8))
	points := []*edwards25519.Point{edwards25519.NewIdentityPoint()}
	for range 7 {
		points = append(points, new(edwards25519.Point).Add(points[len(points)-1], gen))
	}
	return points
}

func point(t testing.TB, b []byte) *edwards25519.Point {
	t.Helper()
	p, err := new(edwards25519.Point).SetBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func withSign(b string) []byte {
	s := []byte(b)
	s[31] |= 0x80
	return s
}

func TestSmallOrderListIsTheTorsionSubgroup(t *testing.T) {
	seen := map[string]bool{}
	for i, p := range torsion(t) {
		if !smallOrder(p.Bytes()) {
			t.Errorf("%d times the generator: not in the list", i)
		}
		seen[string(p.Bytes())] = true
	}
	if len(seen) != 8 {
		t.Errorf("got %d points of small order, want 8", len(seen))
	}
	for _, y := range []string{yOrder1, yOrder2, yOrder4, yOrder8, yOrder8Negative, yOrder4Plus, yOrder1Plus} {
		for _, b := range [][]byte{[]byte(y), withSign(y)} {
			if !seen[string(point(t, b).Bytes())] {
				t.Errorf("%x is in the list but not of small order", b)
			}
		}
	}
}

func TestParsePublicRefuses(t *testing.T) {
	good := testKey(t, 1).Public().Bytes()
	var offCurve []byte
	for y := byte(2); offCurve == nil; y++ {
		b := make([]byte, 32)
		b[0] = y
		if _, err := new(edwards25519.Point).SetBytes(b); err != nil {
			offCurve = b
		}
	}
	type row struct {
		name string
		key  []byte
		want error
	}
	rows := []row{
		{"nil", nil, ErrLength},
		{"31 bytes", good[:31], ErrLength},
		{"33 bytes", append(good[:], 0), ErrLength},
		{"not on the curve", offCurve, ErrEncoding},
		{"identity with its sign bit set", withSign(yOrder1), ErrEncoding},
		{"order 2 with its sign bit set", withSign(yOrder2), ErrEncoding},
		{"y = p", []byte(yOrder4Plus), ErrEncoding},
		{"y = p with sign", withSign(yOrder4Plus), ErrEncoding},
		{"y = p+1", []byte(yOrder1Plus), ErrEncoding},
		{"y = p+1 with sign", withSign(yOrder1Plus), ErrEncoding},
		{"y = 2^255-1", append(bytes.Repeat([]byte{0xff}, 31), 0x7f), ErrEncoding},
	}
	for i, p := range torsion(t) {
		rows = append(rows, row{fmt.Sprintf("torsion point %d", i), p.Bytes(), ErrSmallOrder})
		if i > 0 {
			mixed := new(edwards25519.Point).Add(point(t, good[:]), p)
			rows = append(rows, row{fmt.Sprintf("key plus torsion point %d", i), mixed.Bytes(), ErrTorsion})
		}
	}
	for _, r := range rows {
		if got, err := ParsePublic(r.key); !errors.Is(err, r.want) || !got.IsZero() {
			t.Errorf("%s: got %v, %v, want %v", r.name, got, err, r.want)
		}
	}
}

// Every y from p to 2^255-1 is a non-canonical spelling of y-p.
func TestParsePublicRefusesUnreducedY(t *testing.T) {
	for low := 0xed; low <= 0xff; low++ {
		for _, high := range []byte{0x7f, 0xff} {
			b := bytes.Repeat([]byte{0xff}, 32)
			b[0], b[31] = byte(low), high
			if _, err := ParsePublic(b); !errors.Is(err, ErrEncoding) {
				t.Errorf("%x: got %v, want %v", b, err, ErrEncoding)
			}
		}
	}
}

func TestSignaturesOfPrivateVerify(t *testing.T) {
	one, two := testKey(t, 1), NewPrivate()
	for _, k := range []Private{one, two} {
		pub := k.Public()
		encoded := pub.Bytes()
		parsed, err := ParsePublic(encoded[:])
		if err != nil || parsed != pub {
			t.Fatalf("ParsePublic of a fresh key: %v, %v", parsed, err)
		}
		sig := k.Sign([]byte("message"))
		if !pub.Verify([]byte("message"), sig[:]) {
			t.Error("a valid signature was rejected")
		}
		seed := k.Seed()
		if again, _ := PrivateFromSeed(seed[:]); again.Public() != pub {
			t.Error("the seed yields another key")
		}
	}
	sig := one.Sign([]byte("message"))
	if two.Public().Verify([]byte("message"), sig[:]) {
		t.Error("a signature by another key was accepted")
	}
	if _, err := PrivateFromSeed(make([]byte, 64)); !errors.Is(err, ErrLength) {
		t.Errorf("64-byte seed: %v", err)
	}
}

// RFC 8032, section 7.1, test 2.
func TestSignKnownAnswer(t *testing.T) {
	seed, _ := hex.DecodeString("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
	k, err := PrivateFromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	sig := k.Sign([]byte{0x72})
	want := "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
	if got := hex.EncodeToString(sig[:]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// forger makes signatures with chosen parts from the key's scalar.
type forger struct {
	t      testing.TB
	scalar *edwards25519.Scalar
	public []byte
}

func newForger(t testing.TB, k Private) forger {
	seed := k.Seed()
	h := sha512.Sum512(seed[:])
	s, err := new(edwards25519.Scalar).SetBytesWithClamping(h[:32])
	if err != nil {
		t.Fatal(err)
	}
	pub := k.Public().Bytes()
	return forger{t, s, pub[:]}
}

// sign returns R and S = nonce + SHA-512(R, A, message)·a.
func (f forger) sign(r []byte, nonce *edwards25519.Scalar, message string) []byte {
	h := sha512.Sum512(append(append(bytes.Clone(r), f.public...), message...))
	k, err := new(edwards25519.Scalar).SetUniformBytes(h[:])
	if err != nil {
		f.t.Fatal(err)
	}
	return append(bytes.Clone(r), new(edwards25519.Scalar).MultiplyAdd(k, f.scalar, nonce).Bytes()...)
}

func TestVerifyRefusesSmallOrderR(t *testing.T) {
	k := testKey(t, 3)
	f := newForger(t, k)
	zero := edwards25519.NewScalar()
	sig := f.sign([]byte(yOrder1), zero, "message")
	if !ed25519.Verify(f.public, []byte("message"), sig) {
		t.Fatal("crypto/ed25519 rejects R = identity: the test no longer tests anything")
	}
	for _, y := range []string{yOrder1, yOrder2, yOrder4, yOrder8, yOrder8Negative, yOrder4Plus, yOrder1Plus} {
		for _, r := range [][]byte{[]byte(y), withSign(y)} {
			if k.Public().Verify([]byte("message"), f.sign(r, zero, "message")) {
				t.Errorf("R = %x accepted", r)
			}
			if k.Public().Verify([]byte("message"), append(bytes.Clone(r), make([]byte, 32)...)) {
				t.Errorf("R = %x, S = 0 accepted", r)
			}
		}
	}
}

func TestVerifyRefusesMixedOrderR(t *testing.T) {
	k := testKey(t, 3)
	f := newForger(t, k)
	nonce, err := new(edwards25519.Scalar).SetCanonicalBytes(append([]byte{9}, make([]byte, 31)...))
	if err != nil {
		t.Fatal(err)
	}
	base := new(edwards25519.Point).ScalarBaseMult(nonce)
	for i, p := range torsion(t) {
		r := new(edwards25519.Point).Add(base, p).Bytes()
		got, want := k.Public().Verify([]byte("message"), f.sign(r, nonce, "message")), i == 0
		if got != want {
			t.Errorf("R with torsion point %d: got %v, want %v", i, got, want)
		}
	}
}

func TestVerifyRefusesMutatedSignatures(t *testing.T) {
	k := testKey(t, 4)
	message := []byte("message")
	sig := k.Sign(message)
	for name, mutate := range map[string]func([]byte) []byte{
		"nil":            func([]byte) []byte { return nil },
		"63 bytes":       func(s []byte) []byte { return s[:63] },
		"65 bytes":       func(s []byte) []byte { return append(s, 0) },
		"R bit flipped":  func(s []byte) []byte { s[5] ^= 1; return s },
		"R sign flipped": func(s []byte) []byte { s[31] ^= 0x80; return s },
		"S bit flipped":  func(s []byte) []byte { s[40] ^= 1; return s },
		"S plus L":       addOrder,
		"S zero":         func(s []byte) []byte { return append(s[:32], make([]byte, 32)...) },
		"S is L":         func(s []byte) []byte { return addOrder(append(s[:32], make([]byte, 32)...)) },
		"S high bits":    func(s []byte) []byte { s[63] |= 0xe0; return s },
		"R and S swapped": func(s []byte) []byte {
			return append(bytes.Clone(s[32:]), s[:32]...)
		},
	} {
		if k.Public().Verify(message, mutate(bytes.Clone(sig[:]))) {
			t.Errorf("%s: accepted", name)
		}
	}
	if k.Public().Verify([]byte("messagf"), sig[:]) {
		t.Error("another message: accepted")
	}
}

// addOrder adds the group order L to S.
func addOrder(sig []byte) []byte {
	order, _ := hex.DecodeString("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	carry := 0
	for i, b := range order {
		sum := int(sig[32+i]) + int(b) + carry
		sig[32+i], carry = byte(sum), sum>>8
	}
	return sig
}

func TestZeroPublicVerifiesNothing(t *testing.T) {
	// With A of order 4 and S·B = R, one message in four verifies for anyone.
	one, _ := new(edwards25519.Scalar).SetCanonicalBytes(append([]byte{1}, make([]byte, 31)...))
	sig := append(edwards25519.NewGeneratorPoint().Bytes(), one.Bytes()...)
	bites := false
	for i := range 64 {
		message := []byte{byte(i)}
		bites = bites || ed25519.Verify(make([]byte, 32), message, sig)
		if (Public{}).Verify(message, sig) {
			t.Fatalf("message %d accepted", i)
		}
	}
	if !bites {
		t.Error("crypto/ed25519 accepted no message: the test no longer tests anything")
	}
}

func TestPrivateIsNeverPrinted(t *testing.T) {
	k := testKey(t, 5)
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("key", "key", k)
	slog.New(slog.NewTextHandler(&out, nil)).Info("key", "key", k)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		fmt.Fprintf(&out, verb, k)
	}
	seed := k.Seed()
	for _, secret := range []string{hex.EncodeToString(seed[:]), base64.StdEncoding.EncodeToString(seed[:]), "5 5 5", "0x5"} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the output contains the seed: %s", out.String())
		}
	}
}

func FuzzParsePublic(f *testing.F) {
	good := testKey(f, 1).Public().Bytes()
	f.Add(good[:])
	f.Add([]byte(yOrder1Plus))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := ParsePublic(b)
		if err != nil {
			return
		}
		if got := k.Bytes(); !bytes.Equal(got[:], b) {
			t.Errorf("got %x, want %x", got, b)
		}
		// The definition, computed differently: eight times one eighth of p is p.
		p := point(t, b)
		inverse, _ := new(edwards25519.Scalar).SetCanonicalBytes(append([]byte{8}, make([]byte, 31)...))
		inverse.Invert(inverse)
		part := new(edwards25519.Point).ScalarMult(inverse, new(edwards25519.Point).MultByCofactor(p))
		if part.Equal(p) != 1 {
			t.Errorf("%x has a torsion component", b)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	k := testKey(b, 1)
	message := make([]byte, 32)
	sig := k.Sign(message)
	pub := k.Public()
	b.ReportAllocs()
	for b.Loop() {
		if !pub.Verify(message, sig[:]) {
			b.Fatal("rejected")
		}
	}
}

func BenchmarkParsePublic(b *testing.B) {
	key := testKey(b, 1).Public().Bytes()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePublic(key[:]); err != nil {
			b.Fatal(err)
		}
	}
}
