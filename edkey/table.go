package edkey

import (
	"crypto/sha512"
	"fmt"
	"unsafe"

	"filippo.io/edwards25519"
)

// Base contains multiples of the base point, which all tables share. It is read-only after NewBase.
type Base struct{ multiples [32 * wideWindow]niels } // [128i+j] is (j+1)·256^i·B

// Table contains multiples of one public key, which make verification at least three times as fast.
// It gives the same results as Public.Verify. It is read-only. Its running time depends on the
// input, which is fine because keys and signatures are public.
type Table struct {
	key    Public
	base   *Base
	narrow *[64 * narrowWindow]niels // [8i+j] is -(j+1)·16^i·A; nil if the table is wide
	wide   *[32 * wideWindow]niels   // [128i+j] is -(j+1)·256^i·A; nil if the table is narrow
}

// Numbers of multiples per digit. A digit is in [-8, 8) or in [-128, 128).
const (
	narrowWindow = 8
	wideWindow   = 128
)

// Sizes in memory, in bytes.
const (
	BaseBytes      = int64(unsafe.Sizeof(Base{}))
	TableBytes     = int64(unsafe.Sizeof(Table{}) + unsafe.Sizeof(*Table{}.narrow))
	WideTableBytes = int64(unsafe.Sizeof(Table{}) + unsafe.Sizeof(*Table{}.wide))
)

// NewBase computes the multiples of the base point, which takes some milliseconds.
func NewBase() *Base {
	b := new(Base)
	setMultiples(edwards25519.NewGeneratorPoint(), b.multiples[:], wideWindow)
	return b
}

// NewTable computes the table of a key, which takes as long as a few verifications. The error wraps
// ErrEncoding if k is the zero value, or if it is from Stored and not a point.
func (b *Base) NewTable(k Public) (*Table, error) {
	p, err := negated(k)
	if err != nil {
		return nil, err
	}
	t := &Table{key: k, base: b, narrow: new([64 * narrowWindow]niels)}
	setMultiples(p, t.narrow[:], narrowWindow)
	return t, nil
}

// NewWideTable is NewTable for a key that signs very many messages. A wide table saves a third of
// the additions, has eight times the size, and takes as long to compute as a few hundred
// verifications.
func (b *Base) NewWideTable(k Public) (*Table, error) {
	p, err := negated(k)
	if err != nil {
		return nil, err
	}
	t := &Table{key: k, base: b, wide: new([32 * wideWindow]niels)}
	setMultiples(p, t.wide[:], wideWindow)
	return t, nil
}

// negated returns -A.
func negated(k Public) (*edwards25519.Point, error) {
	p, err := new(edwards25519.Point).SetBytes(k.encoded[:])
	if err != nil || k.IsZero() {
		return nil, fmt.Errorf("table of public key: %w", ErrEncoding)
	}
	return p.Negate(p), nil
}

// IsWide reports whether NewWideTable returned the table.
func (t *Table) IsWide() bool { return t.wide != nil }

// Public returns the key.
func (t *Table) Public() Public { return t.key }

// Verify reports the same as Public.Verify for the table's key.
//
// It follows RFC 8032, section 5.1.7, without the cofactor, as crypto/ed25519 does: S must be below
// L, and R must be the encoding of S·B - k·A. Both scalars are sums of digits times powers of 16 or
// 256, whose multiples are in the tables. A narrow table needs at most 96 additions, a wide one 64,
// and neither needs doublings.
func (t *Table) Verify(message, sig []byte) bool {
	if len(sig) != SignatureSize || smallOrder(sig[:32]) {
		return false
	}
	s, err := new(edwards25519.Scalar).SetCanonicalBytes(sig[32:])
	if err != nil {
		return false
	}
	digest := t.digest(sig[:32], message)
	k, err := new(edwards25519.Scalar).SetUniformBytes(digest[:])
	if err != nil {
		return false
	}
	var r extended
	r.setIdentity()
	t.addMultiple(&r, [32]byte(k.Bytes()))
	t.base.addMultiple(&r, [32]byte(s.Bytes()))
	return r.bytes() == [32]byte(sig[:32])
}

// digest returns SHA-512(R || A || message).
func (t *Table) digest(r, message []byte) (digest [sha512.Size]byte) {
	h := sha512.New()
	h.Write(r)
	h.Write(t.key.encoded[:])
	h.Write(message)
	h.Sum(digest[:0])
	return digest
}

// addMultiple adds -scalar·A.
func (t *Table) addMultiple(p *extended, scalar [32]byte) {
	if t.wide != nil {
		digits := recode256(&scalar)
		addDigits(p, t.wide[:], wideWindow, digits[:])
		return
	}
	digits := recode16(&scalar)
	addDigits(p, t.narrow[:], narrowWindow, digits[:])
}

// addMultiple adds scalar·B.
func (b *Base) addMultiple(p *extended, scalar [32]byte) {
	digits := recode256(&scalar)
	addDigits(p, b.multiples[:], wideWindow, digits[:])
}

// nearby is how many multiples are copied before the first of them is added. The tables of many
// keys do not fit into the processor's caches, and reads that do not wait for an addition overlap.
const nearby = 16

// addDigits adds the multiple of a point from its table. The number of digits must be a multiple of
// nearby.
func addDigits[D int8 | int16](p *extended, multiples []niels, window int, digits []D) {
	var near [nearby]niels
	for ; len(digits) > 0; digits, multiples = digits[nearby:], multiples[nearby*window:] {
		for i, digit := range digits[:nearby] {
			if digit != 0 {
				near[i] = multiples[window*i+max(int(digit), -int(digit))-1]
			}
		}
		for i, digit := range digits[:nearby] {
			p.addSigned(&near[i], int(digit))
		}
	}
}
