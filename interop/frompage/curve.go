package frompage

import (
	"math/big"
	"slices"
)

// curve contains the numbers of edwards25519, RFC 8032 section 5.1: -x² + y² = 1 + dx²y² modulo p.
type curve struct {
	p *big.Int // 2^255 - 19
	d *big.Int // -121665/121666
	l *big.Int // the order of the base point
}

// edwards25519 creates the curve for each call.
func edwards25519() curve {
	one := big.NewInt(1)
	p := new(big.Int).Sub(new(big.Int).Lsh(one, 255), big.NewInt(19))
	d := new(big.Int).ModInverse(big.NewInt(121666), p)
	d.Mod(d.Mul(d, big.NewInt(-121665)), p)
	tail, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	return curve{p: p, d: d, l: tail.Add(tail, new(big.Int).Lsh(one, 252))}
}

// point is a point of the curve in projective coordinates: x = X/Z, y = Y/Z.
type point struct{ x, y, z *big.Int }

// identity is (0, 1).
func (c curve) identity() point {
	return point{big.NewInt(0), big.NewInt(1), big.NewInt(1)}
}

// isIdentity reports whether x is 0 and y is 1. Coordinates are kept reduced.
func (c curve) isIdentity(a point) bool { return a.x.Sign() == 0 && a.y.Cmp(a.z) == 0 }

// decode reads the canonical encoding of a point, RFC 8032 section 5.1.3. It returns false if it is not a point, if y
// is not below p, or if x is 0 and its sign bit is set.
func (c curve) decode(encoded []byte) (point, bool) {
	y, negative := littleEndianY(encoded)
	if y.Cmp(c.p) >= 0 {
		return point{}, false
	}
	// x² = (y² - 1) / (dy² + 1); the divisor is never 0.
	square := c.mul(y, y)
	above := new(big.Int).Sub(square, big.NewInt(1))
	below := new(big.Int).Add(c.mul(c.d, square), big.NewInt(1))
	xx := c.mul(above, new(big.Int).ModInverse(below, c.p))
	x := new(big.Int).ModSqrt(xx, c.p)
	if x == nil || x.Sign() == 0 && negative {
		return point{}, false
	}
	if (x.Bit(0) == 1) != negative {
		x.Sub(c.p, x)
	}
	return point{x, y, big.NewInt(1)}, true
}

// littleEndianY reads 32 bytes: the top bit is the sign of x, the rest is y, which is not reduced here.
func littleEndianY(encoded []byte) (y *big.Int, negative bool) {
	bytes := slices.Clone(encoded)
	negative = bytes[31]&0x80 != 0
	bytes[31] &= 0x7f
	slices.Reverse(bytes)
	return new(big.Int).SetBytes(bytes), negative
}

// mul multiplies modulo p.
func (c curve) mul(a, b *big.Int) *big.Int {
	product := new(big.Int).Mul(a, b)
	return product.Mod(product, c.p)
}

// add is the addition of two points, equal or not:
//
//	x3 = (x1y2 + x2y1) / (1 + dx1x2y1y2)    y3 = (y1y2 + x1x2) / (1 - dx1x2y1y2)
//
// on which both divisors are never 0, since d is no square.
func (c curve) add(a, b point) point {
	zz := c.mul(a.z, b.z)
	xx, yy := c.mul(a.x, b.x), c.mul(a.y, b.y)
	crossed := new(big.Int).Add(c.mul(a.x, b.y), c.mul(b.x, a.y))
	straight := new(big.Int).Add(yy, xx)
	dxxyy := c.mul(c.d, c.mul(xx, yy))
	square := c.mul(zz, zz)
	minus, plus := new(big.Int).Sub(square, dxxyy), new(big.Int).Add(square, dxxyy)
	return point{
		x: c.mul(zz, c.mul(crossed, minus)),
		y: c.mul(zz, c.mul(straight, plus)),
		z: c.mul(minus, plus),
	}
}

// times multiplies a point by n, by doubling and adding from the highest bit of n.
func (c curve) times(n *big.Int, a point) point {
	sum := c.identity()
	for i := n.BitLen() - 1; i >= 0; i-- {
		if sum = c.add(sum, sum); n.Bit(i) == 1 {
			sum = c.add(sum, a)
		}
	}
	return sum
}
