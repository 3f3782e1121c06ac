package edkey

import (
	"bytes"
	"encoding/binary"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"filippo.io/edwards25519/field"
)

// elements returns 0, 1, their neighbours and powers of two in both directions from p, and random elements.
func elements(t testing.TB, n int) []*field.Element {
	t.Helper()
	prime := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	var all []*field.Element
	add := func(n *big.Int) {
		b := n.Mod(n, prime).FillBytes(make([]byte, 32))
		slices.Reverse(b)
		e, err := new(field.Element).SetBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for bit := range 255 {
		power := new(big.Int).Lsh(big.NewInt(1), uint(bit))
		for _, near := range []int64{-1, 0, 1} {
			add(new(big.Int).Add(power, big.NewInt(near)))
			add(new(big.Int).Sub(prime, new(big.Int).Add(power, big.NewInt(near))))
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range n {
		var b [32]byte
		for i := range 4 {
			binary.LittleEndian.PutUint64(b[8*i:], random.Uint64())
		}
		e, err := new(field.Element).SetBytes(b[:])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func TestInverse(t *testing.T) {
	for _, z := range elements(t, 20_000) {
		got, want := inverse(z), new(field.Element).Invert(z)
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Fatalf("inverse of %x: got %x, want %x", z.Bytes(), got.Bytes(), want.Bytes())
		}
	}
}

func FuzzInverse(f *testing.F) {
	f.Add(make([]byte, 32))
	f.Add(bytes.Repeat([]byte{0xff}, 32))
	f.Fuzz(func(t *testing.T, b []byte) {
		var number [32]byte
		copy(number[:], b)
		z, err := new(field.Element).SetBytes(number[:])
		if err != nil {
			t.Fatal(err)
		}
		if got, want := inverse(z), new(field.Element).Invert(z); !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("inverse of %x: got %x, want %x", z.Bytes(), got.Bytes(), want.Bytes())
		}
	})
}

// TestSteps makes the division steps one at a time.
func TestSteps(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 10_000 {
		f, g, delta := random.Uint64()|1, random.Uint64()>>random.IntN(64), random.Int64N(200)-100
		got, next := steps(delta, f, g)
		u, v, q, r := int64(1), int64(0), int64(0), int64(1)
		for range 62 {
			if g&1 == 1 && delta > 0 {
				delta, f, g = -delta, g, -f
				u, v, q, r = q, r, -u, -v
			}
			if g&1 == 1 {
				g, q, r = g+f, q+u, r+v
			}
			delta, g, u, v = delta+1, g>>1, 2*u, 2*v
		}
		if want := (transition{u, v, q, r}); got != want || next != delta {
			t.Fatalf("got %v and delta %d, want %v and %d", got, next, want, delta)
		}
	}
}

func TestSum(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	value := func(s sum) *big.Int {
		n := new(big.Int).Lsh(big.NewInt(int64(s.hi)), 64)
		return n.Add(n, new(big.Int).SetUint64(s.lo))
	}
	for range 10_000 {
		x := int64(random.Uint64()) >> (1 + random.IntN(62))
		y := int64(random.Uint64()) >> (1 + random.IntN(62))
		s := sum{uint64(int64(random.Uint64()) >> (3 + random.IntN(60))), random.Uint64()}
		got := s.add(x, y)
		want := new(big.Int).Mul(big.NewInt(x), big.NewInt(y))
		want.Add(want, value(s))
		if value(got).Cmp(want) != 0 {
			t.Fatalf("%v + %d·%d: got %v, want %v", value(s), x, y, value(got), want)
		}
		if got, want := value(got.shifted()), new(big.Int).Rsh(want, 62); got.Cmp(want) != 0 {
			t.Fatalf("shifted: got %v, want %v", got, want)
		}
		if high := bits.Len64(uint64(got.low())); high > 62 {
			t.Fatalf("the lower bits are %d", high)
		}
	}
}

func BenchmarkInverse(b *testing.B) {
	z := elements(b, 1000)
	b.Run("steps", func(b *testing.B) {
		for i := range b.N {
			inverse(z[i%len(z)])
		}
	})
	b.Run("power", func(b *testing.B) {
		for i := range b.N {
			new(field.Element).Invert(z[i%len(z)])
		}
	})
}
