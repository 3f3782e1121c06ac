package edkey

import (
	"filippo.io/edwards25519"
	"filippo.io/edwards25519/field"
)

// niels is an affine point in the form whose addition needs the fewest multiplications.
type niels struct {
	sum        field.Element // y+x
	difference field.Element // y-x
	product    field.Element // 2dxy
}

// extended is a point (X : Y : Z : T) with x = X/Z, y = Y/Z and xy = T/Z.
type extended struct{ x, y, z, t field.Element }

func (p *extended) setIdentity() {
	p.x.Zero()
	p.y.One()
	p.z.One()
	p.t.Zero()
}

// addSigned adds q if sign is positive, -q if sign is negative, and nothing if sign is 0.
func (p *extended) addSigned(q *niels, sign int) {
	switch {
	case sign > 0:
		p.addPoint(q)
	case sign < 0:
		p.subtractPoint(q)
	}
}

// addPoint adds an affine point (Hisil, Wong, Carter and Dawson, Twisted Edwards Curves Revisited,
// 2008, section 3.1, with Z2 = 1). The formula holds for all points of the curve, because a = -1 is
// a square and d is not.
func (p *extended) addPoint(q *niels) { p.addParts(&q.sum, &q.difference, &q.product, false) }

// subtractPoint adds -q, which is (-x, y): its sum and difference swap, and its product changes its
// sign.
func (p *extended) subtractPoint(q *niels) { p.addParts(&q.difference, &q.sum, &q.product, true) }

func (p *extended) addParts(sum, difference, product *field.Element, isNegative bool) {
	var a, b, c, d, e, f, g, h field.Element
	a.Subtract(&p.y, &p.x)
	a.Multiply(&a, difference)
	b.Add(&p.y, &p.x)
	b.Multiply(&b, sum)
	c.Multiply(&p.t, product)
	d.Add(&p.z, &p.z)
	e.Subtract(&b, &a)
	h.Add(&b, &a)
	if isNegative {
		f.Add(&d, &c)
		g.Subtract(&d, &c)
	} else {
		f.Subtract(&d, &c)
		g.Add(&d, &c)
	}
	p.x.Multiply(&e, &f)
	p.y.Multiply(&g, &h)
	p.z.Multiply(&f, &g)
	p.t.Multiply(&e, &h)
}

// bytes returns the encoding of RFC 8032, section 5.1.2.
func (p *extended) bytes() (encoded [32]byte) {
	var x, y field.Element
	z := inverse(&p.z)
	x.Multiply(&p.x, &z)
	y.Multiply(&p.y, &z)
	copy(encoded[:], y.Bytes())
	encoded[31] |= byte(x.IsNegative() << 7)
	return encoded
}

// twiceD returns 2d. d is -121665/121666 (RFC 7748, section 4.1).
func twiceD() *field.Element {
	one := new(field.Element).One()
	numerator := new(field.Element).Mult32(one, 2*121665)
	denominator := new(field.Element).Mult32(one, 121666)
	denominator.Invert(denominator)
	d := numerator.Multiply(numerator, denominator)
	return d.Negate(d)
}

// setMultiples computes the windows of a point's table one after the other. A window is step·p,
// 2·step·p, ..., size·step·p. step is 1 for the first window and grows by a factor of 2·size from
// one window to the next.
func setMultiples(p *edwards25519.Point, multiples []niels, size int) {
	points := make([]*edwards25519.Point, 0, len(multiples))
	step := new(edwards25519.Point).Set(p)
	for len(points) < len(multiples) {
		sum := new(edwards25519.Point).Set(step)
		for range size {
			points = append(points, new(edwards25519.Point).Set(sum))
			sum.Add(sum, step)
		}
		last := points[len(points)-1]
		step.Add(last, last)
	}
	product := twiceD()
	x, y := affine(points)
	for i := range multiples {
		q := &multiples[i]
		q.sum.Add(&y[i], &x[i])
		q.difference.Subtract(&y[i], &x[i])
		q.product.Multiply(&x[i], &y[i])
		q.product.Multiply(&q.product, product)
	}
}

// affine returns the affine coordinates of points. It needs one inversion for all of them, because
// the inverse of a product yields the inverses of its factors (Montgomery, 1987). Z of a point is
// never zero.
func affine(points []*edwards25519.Point) (x, y []field.Element) {
	x, y = make([]field.Element, len(points)), make([]field.Element, len(points))
	before := make([]field.Element, len(points)) // the product of Z of all earlier points
	z := make([]*field.Element, len(points))
	product := new(field.Element).One()
	for i, p := range points {
		px, py, pz, _ := p.ExtendedCoordinates()
		x[i].Set(px)
		y[i].Set(py)
		z[i] = pz
		before[i].Set(product)
		product.Multiply(product, pz)
	}
	inverse := new(field.Element).Invert(product)
	for i := len(points) - 1; i >= 0; i-- {
		before[i].Multiply(&before[i], inverse) // 1/Z of the point
		inverse.Multiply(inverse, z[i])
		x[i].Multiply(&x[i], &before[i])
		y[i].Multiply(&y[i], &before[i])
	}
	return x, y
}
