package vectors

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"filippo.io/edwards25519"

	"github.com/agentledger/agentledger/tlog"
)

// torsion returns the eight points of small order, beginning with the identity.
func torsion(m *maker) []*edwards25519.Point {
	m.t.Helper()
	raw, err := hex.DecodeString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
	if err != nil {
		m.t.Fatal(err)
	}
	generator, err := new(edwards25519.Point).SetBytes(raw)
	if err != nil {
		m.t.Fatal(err)
	}
	points := []*edwards25519.Point{edwards25519.NewIdentityPoint()}
	for range 7 {
		points = append(points, new(edwards25519.Point).Add(points[len(points)-1], generator))
	}
	return points
}

func publicKeys(m *maker) {
	good := key(m.t, "public").Public().Bytes()
	keyIn := func(b []byte) in { return in{"public_key": hexOf(b)} }
	for i := range 4 {
		k := key(m.t, fmt.Sprint("public ", i)).Public().Bytes()
		m.accept(fmt.Sprint("a key, ", i), keyIn(k[:]), nil)
	}
	m.accept("the base point", keyIn(edwards25519.NewGeneratorPoint().Bytes()), nil)
	m.refuse("empty", keyIn(nil))
	m.refuse("31 bytes", keyIn(good[:31]))
	m.refuse("33 bytes", keyIn(append(good[:], 0)))
	m.refuse("not on the curve", keyIn(append([]byte{2}, make([]byte, 31)...)))
	p := new(edwards25519.Point)
	if _, err := p.SetBytes(good[:]); err != nil {
		m.t.Fatal(err)
	}
	for i, small := range torsion(m) {
		m.refuse(fmt.Sprintf("small order, %d times the generator of those", i), keyIn(small.Bytes()))
		if i > 0 {
			m.refuse(fmt.Sprintf("a key plus the point of small order %d", i), keyIn(new(edwards25519.Point).Add(p, small).Bytes()))
		}
	}
	for name, b := range ordered(map[string]string{
		"identity with the sign bit": "0100000000000000000000000000000000000000000000000000000000000080",
		"order 2 with the sign bit":  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"y is p":                     "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"y is p, with the sign bit":  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"y is p + 1":                 "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"y is p + 3":                 "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"y is 2^255 - 1":             "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	}) {
		m.refuse("not canonical: "+name, in{"public_key": b})
	}
}

// forger makes signatures with chosen parts.
type forger struct {
	m      *maker
	scalar *edwards25519.Scalar
	public []byte
}

func newForger(m *maker, name string) forger {
	k := key(m.t, name)
	seed := k.Seed()
	h := sha512.Sum512(seed[:])
	s, err := new(edwards25519.Scalar).SetBytesWithClamping(h[:32])
	if err != nil {
		m.t.Fatal(err)
	}
	pub := k.Public().Bytes()
	return forger{m, s, pub[:]}
}

// sign returns r and nonce + SHA-512(r, A, message) times the scalar.
func (f forger) sign(r []byte, nonce *edwards25519.Scalar, message string) []byte {
	h := sha512.Sum512(append(append(bytes.Clone(r), f.public...), message...))
	k, err := new(edwards25519.Scalar).SetUniformBytes(h[:])
	if err != nil {
		f.m.t.Fatal(err)
	}
	return append(bytes.Clone(r), new(edwards25519.Scalar).MultiplyAdd(k, f.scalar, nonce).Bytes()...)
}

func signatures(m *maker) {
	const message = "message"
	k, f := key(m.t, "signature"), newForger(m, "signature")
	good := k.Sign([]byte(message))
	sigIn := func(sig []byte) in {
		return in{"public_key": hexOf(f.public), "message": hexOf([]byte(message)), "signature": hexOf(sig)}
	}
	m.accept("a signature", sigIn(good[:]), nil)
	empty := k.Sign(nil)
	m.accept("of the empty message", sigIn(empty[:]).with("message", ""), nil)
	m.refuse("of another message", sigIn(good[:]).with("message", hexOf([]byte("massage"))))
	other := key(m.t, "another").Public().Bytes()
	m.refuse("of another key", sigIn(good[:]).with("public_key", hexOf(other[:])))
	bend := func(name string, f func([]byte) []byte) { m.refuse(name, sigIn(f(bytes.Clone(good[:])))) }
	bend("empty", func([]byte) []byte { return nil })
	bend("63 bytes", func(s []byte) []byte { return s[:63] })
	bend("65 bytes", func(s []byte) []byte { return append(s, 0) })
	bend("a bit of R", func(s []byte) []byte { s[5] ^= 1; return s })
	bend("the sign of R", func(s []byte) []byte { s[31] ^= 0x80; return s })
	bend("a bit of S", func(s []byte) []byte { s[40] ^= 1; return s })
	bend("S plus the order of the group", addOrder)
	bend("S is the order of the group", func(s []byte) []byte { return addOrder(append(s[:32], make([]byte, 32)...)) })
	bend("the three highest bits of S", func(s []byte) []byte { s[63] |= 0xe0; return s })
	bend("R and S exchanged", func(s []byte) []byte { return append(bytes.Clone(s[32:]), s[:32]...) })
	zero := edwards25519.NewScalar()
	nonce, err := new(edwards25519.Scalar).SetCanonicalBytes(append([]byte{9}, make([]byte, 31)...))
	if err != nil {
		m.t.Fatal(err)
	}
	base := new(edwards25519.Point).ScalarBaseMult(nonce)
	m.accept("a small nonce", sigIn(f.sign(base.Bytes(), nonce, message)), nil)
	for i, p := range torsion(m) {
		m.refuse(fmt.Sprintf("R of small order, %d", i), sigIn(f.sign(p.Bytes(), zero, message)))
		if i > 0 {
			m.refuse(fmt.Sprintf("R plus the point of small order %d", i), sigIn(f.sign(new(edwards25519.Point).Add(base, p).Bytes(), nonce, message)))
		}
	}
	notCanonical := append([]byte{0xee}, bytes.Repeat([]byte{0xff}, 31)...)
	notCanonical[31] = 0x7f
	m.refuse("R of small order, not canonical", sigIn(f.sign(notCanonical, zero, message)))
	identity := append([]byte{1}, make([]byte, 31)...)
	m.refuse("a key of small order, for which everybody signs", in{"public_key": hexOf(identity), "message": hexOf([]byte(message)), "signature": hexOf(append(edwards25519.NewGeneratorPoint().Bytes(), append([]byte{1}, make([]byte, 31)...)...))})
}

// addOrder adds the order of the group to S.
func addOrder(sig []byte) []byte {
	order, _ := hex.DecodeString("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	carry := 0
	for i, b := range order {
		sum := int(sig[32+i]) + int(b) + carry
		sig[32+i], carry = byte(sum), sum>>8
	}
	return sig
}

const logName = "log.example/o/ab000000-0000-0000-0000-000000000001"

// signer returns the key of a log.
func (m *maker) signer(name string) tlog.SignerKey {
	m.t.Helper()
	k, err := tlog.NewSignerKey(name, key(m.t, name))
	if err != nil {
		m.t.Fatal(err)
	}
	return k
}

// witness returns the key of a witness.
func (m *maker) witness(name string) tlog.WitnessSigner {
	m.t.Helper()
	w, err := tlog.NewWitnessSigner(name, key(m.t, name))
	if err != nil {
		m.t.Fatal(err)
	}
	return w
}

// vkey writes a verifier key from its description, whatever that contains.
func vkey(name string, alg byte, public []byte) string {
	typed := append([]byte{alg}, public...)
	return fmt.Sprintf("%s+%08x+%s", name, keyID(name, typed), b64(typed))
}

func keyID(name string, typed []byte) uint32 {
	sum := sha256.Sum256(append([]byte(name+"\n"), typed...))
	return binary.BigEndian.Uint32(sum[:])
}

func logKeys(m *maker) {
	m.verifierKeys(1, func(name string) (string, map[string]any) {
		k := m.signer(name).Verifier()
		public := k.Public().Bytes()
		return k.String(), keySaid(k.Name(), k.Hash(), public[:])
	})
}

func witnessKeys(m *maker) {
	m.verifierKeys(4, func(name string) (string, map[string]any) {
		k := m.witness(name).Key()
		return k.String(), keySaid(k.Name(), k.Hash(), k.Typed()[1:])
	})
}

func (m *maker) verifierKeys(alg byte, make func(name string) (string, map[string]any)) {
	for _, name := range []string{logName, "w", "größe.example/ü", strings.Repeat("n", tlog.MaxName)} {
		text, expect := make(name)
		m.accept(fmt.Sprintf("a name of %d bytes", len(name)), in{"vkey": text}, expect)
	}
	good, _ := make(logName)
	parts := strings.SplitN(good, "+", 3)
	name, id, encoded := parts[0], parts[1], parts[2]
	public := key(m.t, logName).Public().Bytes()
	other := map[byte]byte{1: 4, 4: 1}[alg]
	for _, c := range []struct{ name, vkey string }{
		{"empty", ""},
		{"no key", name + "+" + id},
		{"no name", "+" + id + "+" + encoded},
		{"another name", "x" + good},
		{"key id of another key", name + "+00000000+" + encoded},
		{"key id in upper case", name + "+" + strings.ToUpper(id) + "+" + encoded},
		{"key id with a leading zero", name + "+0" + id + "+" + encoded},
		{"key id cut", name + "+" + id[1:] + "+" + encoded},
		{"key id over the bare key", fmt.Sprintf("%s+%08x+%s", name, keyID(name, public[:]), encoded)},
		{"key id without the line end", fmt.Sprintf("%s+%08x+%s", name, unseparated(name, alg, public[:]), encoded)},
		{"name with a space", vkey("a b", alg, public[:])},
		{"name with a plus", vkey("a+b", alg, public[:])},
		{"name with a line end", vkey("a\nb", alg, public[:])},
		{"name with a carriage return", vkey("a\rb", alg, public[:])},
		{"name with a control character", vkey("a\x01b", alg, public[:])},
		{"name with DEL", vkey("a\x7fb", alg, public[:])},
		{"name with a no-break space", vkey("a\u00a0b", alg, public[:])},
		{"name with a line separator", vkey("a\u2028b", alg, public[:])},
		{"name not UTF-8", vkey("a\xffb", alg, public[:])},
		{"name of 256 bytes", vkey(strings.Repeat("n", 256), alg, public[:])},
		{"key with too much padding", good + "="},
		{"key in the URL alphabet", urlSpelled(m, name, alg)},
		{"key cut", vkey(name, alg, public[:31])},
		{"key longer", vkey(name, alg, append(public[:], 0))},
		{"line end behind", good + "\n"},
		{"carriage return behind", good + "\r"},
		{"line end inside of the key", good[:len(good)-8] + "\n" + good[len(good)-8:]},
		{"space before", " " + good},
		{"space behind", good + " "},
		{"signature type of the other use", vkey(name, other, public[:])},
		{"signature type 2", vkey(name, 2, public[:])},
		{"signature type 6", vkey(name, 6, public[:])},
		{"no signature type", fmt.Sprintf("%s+%08x+%s", name, keyID(name, public[:]), b64(public[:]))},
		{"point of small order", vkey(name, alg, append([]byte{1}, bytes.Repeat([]byte{0}, 31)...))},
		{"point of order 8", vkey(name, alg, torsion(m)[1].Bytes())},
		{"point of mixed order", vkey(name, alg, mixed(m, public[:]))},
		{"point not canonical", vkey(name, alg, append(append([]byte{0xf0}, bytes.Repeat([]byte{0xff}, 30)...), 0x7f))},
		{"no point", vkey(name, alg, append([]byte{2}, bytes.Repeat([]byte{0}, 31)...))},
	} {
		m.refuse(c.name, in{"vkey": c.vkey})
	}
}

// unseparated returns a key id over a name and a key with nothing between them.
func unseparated(name string, alg byte, public []byte) uint32 {
	sum := sha256.Sum256(append(append([]byte(name), alg), public...))
	return binary.BigEndian.Uint32(sum[:])
}

// urlSpelled returns a key whose base64 has a slash, with an underscore in its place.
func urlSpelled(m *maker, name string, alg byte) string {
	for i := 0; ; i++ {
		public := key(m.t, fmt.Sprint("slash ", i)).Public().Bytes()
		typed := append([]byte{alg}, public[:]...)
		if text := base64.URLEncoding.EncodeToString(typed); strings.ContainsAny(text, "-_") {
			return fmt.Sprintf("%s+%08x+%s", name, keyID(name, typed), text)
		}
	}
}

// mixed returns a key plus a point of order 8.
func mixed(m *maker, public []byte) []byte {
	p, err := new(edwards25519.Point).SetBytes(public)
	if err != nil {
		m.t.Fatal(err)
	}
	return p.Add(p, torsion(m)[1]).Bytes()
}
