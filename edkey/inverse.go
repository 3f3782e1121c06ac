package edkey

import (
	"encoding/binary"
	"math/bits"

	"filippo.io/edwards25519/field"
)

// limbs is an integer: the sum of limb[i]·2^(62i). The last limb has the sign.
type limbs [5]int64

// low62 has the lower 62 bits set.
const low62 = 1<<62 - 1

// minusPrimeInverse is 1/-p modulo 2^62, for the prime p = 2^255-19, whose limbs are -19, 0, 0, 0 and 2^7.
const minusPrimeInverse = 0x06bca1af286bca1b

// transition is what 62 division steps do: they make (f, g) to (uf+vg, qf+rg)/2^62. The absolute values of u and v have a
// sum of at most 2^62, and so have those of q and r.
type transition struct{ u, v, q, r int64 }

// inverse returns 1/z, and 0 if z is 0. Its time depends on z, so z must be public.
//
// These are division steps (Bernstein and Yang, Fast constant-time gcd computation and modular inversion, 2019, section 11).
// Each makes f odd and g smaller, until g is 0 and f is 1 or -1. f is always d·z modulo p and g is e·z, so that at last d is
// the inverse, except for its sign. The number of steps is at most 741 (theorem 11.2 there, for numbers below 2^256). 62
// steps need only the lower 62 bits of f and g, so they are computed in one word, and applied to the whole numbers at once.
func inverse(z *field.Element) (result field.Element) {
	f, g := limbs{-19, 0, 0, 0, 1 << 7}, split(z.Bytes())
	var d, e limbs
	e[0] = 1
	delta, size := int64(1), len(f)
	for g != (limbs{}) {
		var t transition
		t, delta = steps(delta, uint64(f[0]), uint64(g[0]))
		d, e = t.modulo(&d, &e)
		t.apply(&f, &g, size)
		size = shorten(&f, &g, size)
	}
	if d[4] < 0 {
		d.addPrime()
	}
	if f[size-1] < 0 {
		for i := range d {
			d[i] = -d[i]
		}
		d.carry()
	}
	if d[4] < 0 {
		d.addPrime()
	}
	b := d.join()
	result.SetBytes(b[:]) // fails only for another length
	return result
}

// steps returns the transition of 62 division steps for the lower bits of f and g, and the next delta.
//
// A step swaps f and g if delta is positive and g is odd, and then clears the lowest bit of g with f and halves g. Steps with
// an even g are made together, and up to six of those that clear a bit with the same f.
func steps(delta int64, f, g uint64) (transition, int64) {
	u, v, q, r := uint64(1), uint64(0), uint64(0), uint64(1)
	for left := 62; ; {
		zeros := bits.TrailingZeros64(g | ^uint64(0)<<left)
		g >>= zeros
		u <<= zeros
		v <<= zeros
		delta += int64(zeros)
		left -= zeros
		if left == 0 {
			return transition{int64(u), int64(v), int64(q), int64(r)}, delta
		}
		if delta > 0 {
			delta = -delta
			f, g = g, -f
			u, q = q, -u
			v, r = r, -v
		}
		// f is odd, so f·(2-f²) is 1/f modulo 2^6, and w·f+g has as many zeros as the mask has bits. delta stays at most 0 for
		// so many steps that f is not swapped within them.
		mask := ^uint64(0) >> (64 - min(1-delta, int64(left), 6))
		w := f * g * (f*f - 2) & mask
		g += f * w
		q += u * w
		r += v * w
	}
}

// apply applies t to the lower limbs of f and g, whose other limbs are zero.
func (t *transition) apply(f, g *limbs, size int) {
	var a, b sum
	for i := range size {
		a = a.add(t.u, f[i]).add(t.v, g[i])
		b = b.add(t.q, f[i]).add(t.r, g[i])
		if i > 0 {
			f[i-1], g[i-1] = a.low(), b.low()
		}
		a, b = a.shifted(), b.shifted()
	}
	f[size-1], g[size-1] = int64(a.lo), int64(b.lo)
}

// modulo returns t applied to d and e, modulo p. All are in (-2p, p), and their limbs but the last are in [0, 2^62).
//
// Before the division by 2^62, multiples of p are added: as many as make the lower 62 bits zero, and so many that the
// negative ones of d and e get into [-p, p).
func (t *transition) modulo(d, e *limbs) (limbs, limbs) {
	signD, signE := d[4]>>63, e[4]>>63
	m := t.u&signD + t.v&signE
	n := t.q&signD + t.r&signE
	a := sum{}.add(t.u, d[0]).add(t.v, e[0])
	b := sum{}.add(t.q, d[0]).add(t.r, e[0])
	m -= (m - minusPrimeInverse*int64(a.lo)) & low62
	n -= (n - minusPrimeInverse*int64(b.lo)) & low62
	a, b = a.add(-19, m).shifted(), b.add(-19, n).shifted()
	var nextD, nextE limbs
	for i := 1; i < len(d); i++ {
		a = a.add(t.u, d[i]).add(t.v, e[i])
		b = b.add(t.q, d[i]).add(t.r, e[i])
		if i == len(d)-1 {
			a, b = a.add(1<<7, m), b.add(1<<7, n)
		}
		nextD[i-1], nextE[i-1] = a.low(), b.low()
		a, b = a.shifted(), b.shifted()
	}
	nextD[4], nextE[4] = int64(a.lo), int64(b.lo)
	return nextD, nextE
}

// shorten returns how many limbs f and g need, and moves the sign into the last of them.
func shorten(f, g *limbs, size int) int {
	last := size - 1
	signF, signG := f[last], g[last]
	if last == 0 || signF != signF>>63 || signG != signG>>63 {
		return size
	}
	f[last-1] |= signF << 62
	g[last-1] |= signG << 62
	f[last], g[last] = 0, 0
	return last
}

func (l *limbs) addPrime() {
	l[0] -= 19
	l[4] += 1 << 7
	l.carry()
}

// carry gets all limbs but the last into [0, 2^62).
func (l *limbs) carry() {
	for i := range len(l) - 1 {
		l[i+1] += l[i] >> 62
		l[i] &= low62
	}
}

// split returns the integer of a field element in little-endian bytes.
func split(b []byte) limbs {
	w0, w1 := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	w2, w3 := binary.LittleEndian.Uint64(b[16:]), binary.LittleEndian.Uint64(b[24:])
	return limbs{
		int64(w0 & low62),
		int64((w0>>62 | w1<<2) & low62),
		int64((w1>>60 | w2<<4) & low62),
		int64((w2>>58 | w3<<6) & low62),
		int64(w3 >> 56),
	}
}

// join returns the little-endian bytes of an integer in [0, 2^255).
func (l *limbs) join() (b [32]byte) {
	binary.LittleEndian.PutUint64(b[:], uint64(l[0]|l[1]<<62))
	binary.LittleEndian.PutUint64(b[8:], uint64(l[1]>>2|l[2]<<60))
	binary.LittleEndian.PutUint64(b[16:], uint64(l[2]>>4|l[3]<<58))
	binary.LittleEndian.PutUint64(b[24:], uint64(l[3]>>6|l[4]<<56))
	return b
}

// sum is a signed integer of 128 bits.
type sum struct{ hi, lo uint64 }

// add returns s + x·y.
func (s sum) add(x, y int64) sum {
	hi, lo := bits.Mul64(uint64(x), uint64(y))
	hi -= uint64(x>>63&y) + uint64(y>>63&x)
	lo, carry := bits.Add64(s.lo, lo, 0)
	hi, _ = bits.Add64(s.hi, hi, carry)
	return sum{hi, lo}
}

// low returns the lower 62 bits.
func (s sum) low() int64 { return int64(s.lo & low62) }

// shifted returns s/2^62, rounded down.
func (s sum) shifted() sum { return sum{uint64(int64(s.hi) >> 62), s.lo>>62 | s.hi<<2} }
