package tlog

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/agentledger/agentledger/id"
)

// claim is the input of a check.
type claim struct {
	a, b         id.Index // index and size, or from and to
	first, other id.Hash  // leaf and root, or the two roots
	proof        []id.Hash
}

func (c claim) clone() claim {
	c.proof = slices.Clone(c.proof)
	return c
}

func flip(h id.Hash) id.Hash {
	h[31] ^= 1
	return h
}

// mutations of a true claim. All except those that leave it unchanged make it false.
var mutations = []struct {
	name string
	make func(claim) claim
}{
	{"hash dropped from the end", func(c claim) claim { c.proof = c.proof[:max(0, len(c.proof)-1)]; return c }},
	{"hash dropped from the front", func(c claim) claim { c.proof = c.proof[min(1, len(c.proof)):]; return c }},
	{"hash added at the end", func(c claim) claim { c.proof = append(c.proof, c.other); return c }},
	{"hash added at the front", func(c claim) claim { c.proof = append([]id.Hash{c.first}, c.proof...); return c }},
	{"zero hash added", func(c claim) claim { c.proof = append(c.proof, id.Hash{}); return c }},
	{"hashes in reverse order", func(c claim) claim { slices.Reverse(c.proof); return c }},
	{"first hash changed", func(c claim) claim {
		if len(c.proof) > 0 {
			c.proof[0] = flip(c.proof[0])
		}
		return c
	}},
	{"last hash changed", func(c claim) claim {
		if n := len(c.proof); n > 0 {
			c.proof[n-1] = flip(c.proof[n-1])
		}
		return c
	}},
	{"leaf or older root changed", func(c claim) claim { c.first = flip(c.first); return c }},
	{"root changed", func(c claim) claim { c.other = flip(c.other); return c }},
	{"hashes swapped", func(c claim) claim { c.first, c.other = c.other, c.first; return c }},
	{"index one less", func(c claim) claim { c.a--; return c }},
	{"index one more", func(c claim) claim { c.a++; return c }},
	{"index beyond the size", func(c claim) claim { c.a = c.b + 1; return c }},
	{"size 0", func(c claim) claim { c.b = 0; return c }},
	{"size above the limit", func(c claim) claim { c.b = MaxSize + 1; return c }},
	{"proof empty", func(c claim) claim { c.proof = nil; return c }},
}

func same(x, y claim) bool {
	return x.a == y.a && x.b == y.b && x.first == y.first && x.other == y.other && slices.Equal(x.proof, y.proof)
}

func TestCheckInclusionRefuses(t *testing.T) {
	o := newOracle(40)
	for n := 1; n <= 40; n++ {
		for m := range n {
			good := claim{id.Index(m), id.Index(n), o.leaves[m], o.root(0, n), o.path(m, 0, n)}
			for _, mutation := range mutations {
				bad := mutation.make(good.clone())
				err := CheckInclusion(bad.a, bad.b, bad.first, bad.proof, bad.other)
				if errors.Is(err, ErrProof) == same(good, bad) {
					t.Errorf("%d in %d, %s: got %v", m, n, mutation.name, err)
				}
			}
		}
	}
}

func TestCheckConsistencyRefuses(t *testing.T) {
	o := newOracle(40)
	for n := range 41 {
		for m := range n + 1 {
			good := claim{id.Index(m), id.Index(n), o.root(0, m), o.root(0, n), o.proof(m, n)}
			for _, mutation := range mutations {
				bad := mutation.make(good.clone())
				trueAlso := bad.a == 0 && good.a == 0 && len(bad.proof) == 0 && bad.first == EmptyRoot() && bad.b > 0 && bad.b <= MaxSize
				err := CheckConsistency(bad.a, bad.b, bad.first, bad.other, bad.proof)
				if errors.Is(err, ErrProof) == (same(good, bad) || trueAlso) {
					t.Errorf("from %d to %d, %s: got %v", m, n, mutation.name, err)
				}
			}
		}
	}
}

func TestCheckConsistencyFromEmptyAndEqual(t *testing.T) {
	o := newOracle(5)
	empty, root := EmptyRoot(), o.root(0, 5)
	for _, c := range []struct {
		name     string
		from, to id.Index
		fromRoot id.Hash
		toRoot   id.Hash
		proof    []id.Hash
		ok       bool
	}{
		{"empty to empty", 0, 0, empty, empty, nil, true},
		{"empty to five", 0, 5, empty, root, nil, true},
		{"five to five", 5, 5, root, root, nil, true},
		{"empty to empty, other root", 0, 0, empty, root, nil, false},
		{"empty to empty, zero roots", 0, 0, id.Hash{}, id.Hash{}, nil, false},
		{"empty with the root of five", 0, 5, root, root, nil, false},
		{"empty with a zero root", 0, 5, id.Hash{}, root, nil, false},
		{"empty with a hash", 0, 5, empty, root, []id.Hash{root}, false},
		{"five to five, other root", 5, 5, root, empty, nil, false},
		{"five to five with a hash", 5, 5, root, root, []id.Hash{root}, false},
	} {
		if err := CheckConsistency(c.from, c.to, c.fromRoot, c.toRoot, c.proof); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}

func raw(hashes []id.Hash) [][]byte {
	var b [][]byte
	for _, h := range hashes {
		b = append(b, h[:])
	}
	return b
}

// Another verifier agrees for proofs of every length and for random indices and sizes,
// both true and false.
func TestChecksAgreeWithTransparencyDevMerkle(t *testing.T) {
	random := rand.New(rand.NewPCG(6962, 1))
	o := newOracle(130)
	for range 20000 {
		n := 1 + random.IntN(130)
		m := random.IntN(n)
		in := claim{id.Index(m), id.Index(n), o.leaves[m], o.root(0, n), o.path(m, 0, n)}
		co := claim{id.Index(m), id.Index(n), o.root(0, m), o.root(0, n), o.proof(m, n)}
		mutation := mutations[random.IntN(len(mutations))]
		if random.IntN(4) > 0 {
			in, co = mutation.make(in.clone()), mutation.make(co.clone())
		}
		compareInclusion(t, in)
		compareConsistency(t, co)
	}
}

func compareInclusion(t *testing.T, c claim) {
	t.Helper()
	ours := CheckInclusion(c.a, c.b, c.first, c.proof, c.other)
	theirs := proof.VerifyInclusion(rfc6962.DefaultHasher, uint64(c.a), uint64(c.b), c.first[:], raw(c.proof), c.other[:])
	if c.b <= MaxSize && (ours == nil) != (theirs == nil) || ours == nil && theirs != nil {
		t.Errorf("inclusion of %d in %d with %d hashes: ours %v, theirs %v", c.a, c.b, len(c.proof), ours, theirs)
	}
}

// From size 0 on ours is stricter: the other verifier ignores the root.
func compareConsistency(t *testing.T, c claim) {
	t.Helper()
	ours := CheckConsistency(c.a, c.b, c.first, c.other, c.proof)
	theirs := proof.VerifyConsistency(rfc6962.DefaultHasher, uint64(c.a), uint64(c.b), raw(c.proof), c.first[:], c.other[:])
	if c.a > 0 && c.b <= MaxSize && (ours == nil) != (theirs == nil) || ours == nil && theirs != nil {
		t.Errorf("from %d to %d with %d hashes: ours %v, theirs %v", c.a, c.b, len(c.proof), ours, theirs)
	}
}

func FuzzChecksAcceptNoMoreThanTransparencyDevMerkle(f *testing.F) {
	o := newOracle(50)
	f.Add(uint64(3), uint64(50), uint8(0), uint8(0))
	f.Add(uint64(32), uint64(48), uint8(1), uint8(3))
	f.Fuzz(func(t *testing.T, a, b uint64, change, at uint8) {
		m, n := int(a%50), 1+int(b%50)
		m %= n
		in := claim{id.Index(m), id.Index(n), o.leaves[m], o.root(0, n), o.path(m, 0, n)}
		co := claim{id.Index(m), id.Index(n), o.root(0, m), o.root(0, n), o.proof(m, n)}
		for _, c := range []*claim{&in, &co} {
			*c = c.clone()
			if change&1 != 0 {
				c.a = id.Index(a)
			}
			if change&2 != 0 {
				c.b = id.Index(b)
			}
			if change&4 != 0 && int(at) < len(c.proof) {
				c.proof[at] = flip(c.proof[at])
			}
			if change&8 != 0 && int(at) < len(c.proof) {
				c.proof = slices.Delete(c.proof, int(at), int(at)+1)
			}
		}
		compareInclusion(t, in)
		compareConsistency(t, co)
	})
}

func BenchmarkCheckInclusion(b *testing.B) {
	const index, size = 777_777, 1 << 20
	u := newUniform()
	hashes, err := Inclusion(b.Context(), u, index, size)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := CheckInclusion(index, size, u.heights[0], hashes, u.heights[20]); err != nil {
			b.Fatal(err)
		}
	}
}
