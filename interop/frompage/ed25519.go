package frompage

import (
	"crypto/ed25519"
	"encoding/hex"
	"math/big"
	"slices"
)

// publicKeyCounts implements the first rule of "Ed25519": the canonical encoding of a point other than the identity
// whose product with L is the identity. So it rejects points of small order and points with a torsion component.
func publicKeyCounts(key []byte) bool {
	if len(key) != ed25519.PublicKeySize {
		return false
	}
	c := edwards25519()
	a, ok := c.decode(key)
	return ok && !c.isIdentity(a) && c.isIdentity(c.times(c.l, a))
}

// signatureCounts implements the second rule of "Ed25519", for a valid key. crypto/ed25519 checks what the page
// requires of S (below L) and of the equation (without cofactor, R compared byte by byte); R of small order is rejected
// here.
func signatureCounts(key, message, sig []byte) bool {
	return publicKeyCounts(key) && len(sig) == ed25519.SignatureSize &&
		!hasSmallOrder(sig[:32]) && ed25519.Verify(key, message, sig)
}

// hasSmallOrder reports whether 32 bytes encode one of the eight points of small order, even in a non-canonical
// encoding: without its top bit and modulo p, y is one of five.
func hasSmallOrder(encoded []byte) bool {
	p := edwards25519().p
	y, _ := littleEndianY(encoded)
	y.Mod(y, p)
	of8a, _ := hex.DecodeString("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
	of8b, _ := hex.DecodeString("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
	y8a, _ := littleEndianY(of8a)
	y8b, _ := littleEndianY(of8b)
	small := []*big.Int{big.NewInt(0), big.NewInt(1), new(big.Int).Sub(p, big.NewInt(1)), y8a, y8b}
	return slices.ContainsFunc(small, func(s *big.Int) bool { return s.Cmp(y) == 0 })
}
