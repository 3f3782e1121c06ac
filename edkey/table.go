package edkey

import (
	"crypto/sha512"
	"fmt"
	"unsafe"

	"filippo.io/edwards25519"
)

// Base is multiples of the base point, which all tables share. It is read only after NewBase.
type Base struct {
	multiples [32][128]niels // [i][j] is (j+1)·256^i·B
}

// Table is multiples of one public key, with which its signatures are verified in a third of the time or less. It
// answers exactly as Public.Verify. It is read only, and takes variable time, because keys and signatures are public.
type Table struct {
	key       Public
	base      *Base
	multiples [64][8]niels // [i][j] is -(j+1)·16^i·A
}

// Sizes in bytes, in memory.
const (
	BaseBytes  = int64(unsafe.Sizeof(Base{}))
	TableBytes = int64(unsafe.Sizeof(Table{}))
)

// NewBase computes the multiples of the base point, in some milliseconds.
func NewBase() *Base {
	b := new(Base)
	windows := make([][]niels, len(b.multiples))
	for i := range windows {
		windows[i] = b.multiples[i][:]
	}
	setMultiples(edwards25519.NewGeneratorPoint(), windows)
	return b
}

// NewTable computes the table of a key. It takes as long as a few verifications. Errors wrap ErrEncoding, for the zero
// value and for bytes given to Stored that are no point.
func (b *Base) NewTable(k Public) (*Table, error) {
	p, err := new(edwards25519.Point).SetBytes(k.encoded[:])
	if err != nil || k.IsZero() {
		return nil, fmt.Errorf("table of public key: %w", ErrEncoding)
	}
	t := &Table{key: k, base: b}
	windows := make([][]niels, len(t.multiples))
	for i := range windows {
		windows[i] = t.multiples[i][:]
	}
	setMultiples(p.Negate(p), windows)
	return t, nil
}

// Public returns the key.
func (t *Table) Public() Public { return t.key }

// Verify is Public.Verify of the table's key.
//
// RFC 8032, section 5.1.7, without the cofactor, as crypto/ed25519: S must be below L, and R must be the encoding of
// S·B - k·A. Both scalars are sums of digits times powers of 16 and 256, whose multiples are in the tables: at most
// 96 additions, and no doubling.
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
	for i, digit := range recode16(&scalar) {
		switch {
		case digit > 0:
			p.addPoint(&t.multiples[i][digit-1])
		case digit < 0:
			p.subtractPoint(&t.multiples[i][-digit-1])
		}
	}
}

// addMultiple adds scalar·B.
func (b *Base) addMultiple(p *extended, scalar [32]byte) {
	for i, digit := range recode256(&scalar) {
		switch {
		case digit > 0:
			p.addPoint(&b.multiples[i][digit-1])
		case digit < 0:
			p.subtractPoint(&b.multiples[i][-digit-1])
		}
	}
}
