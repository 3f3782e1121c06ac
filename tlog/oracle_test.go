package tlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// oracle is the tree of RFC 6962 section 2.1, written as its recursive definitions, with
// a cache so that tests can request everything.
type oracle struct {
	leaves []id.Hash
	known  map[[2]int]id.Hash
}

func newOracle(n int) *oracle {
	return &oracle{leaves: testLeaves(n), known: map[[2]int]id.Hash{}}
}

func testEntry(i int) []byte { return binary.BigEndian.AppendUint64([]byte("entry "), uint64(i)) }

func testLeaves(n int) []id.Hash {
	leaves := make([]id.Hash, n)
	for i := range leaves {
		leaves[i] = LeafHash(testEntry(i))
	}
	return leaves
}

// split returns the largest power of two below n.
func split(n int) int {
	k := 1
	for 2*k < n {
		k *= 2
	}
	return k
}

// root returns MTH(D[begin:end]).
func (o *oracle) root(begin, end int) id.Hash {
	switch end - begin {
	case 0:
		return EmptyRoot()
	case 1:
		return o.leaves[begin]
	}
	if h, ok := o.known[[2]int{begin, end}]; ok {
		return h
	}
	k := split(end - begin)
	h := NodeHash(o.root(begin, begin+k), o.root(begin+k, end))
	o.known[[2]int{begin, end}] = h
	return h
}

// path returns PATH(m, D[begin:end]) of section 2.1.1.
func (o *oracle) path(m, begin, end int) []id.Hash {
	n := end - begin
	if n == 1 {
		return nil
	}
	if k := split(n); m < k {
		return append(o.path(m, begin, begin+k), o.root(begin+k, end))
	} else {
		return append(o.path(m-k, begin+k, end), o.root(begin, begin+k))
	}
}

// proof returns PROOF(m, D[0:n]) of section 2.1.2, or nothing if m is 0.
func (o *oracle) proof(m, n int) []id.Hash {
	if m == 0 {
		return nil
	}
	return o.subproof(m, 0, n, true)
}

func (o *oracle) subproof(m, begin, end int, known bool) []id.Hash {
	n := end - begin
	if m == n {
		if known {
			return nil
		}
		return []id.Hash{o.root(begin, end)}
	}
	if k := split(n); m <= k {
		return append(o.subproof(m, begin, begin+k, known), o.root(begin+k, end))
	} else {
		return append(o.subproof(m-k, begin+k, end, false), o.root(begin, begin+k))
	}
}

// tiles is a TileReader over the oracle's leaves that checks the promises of Prover: it
// reads each tile once per call, at its exact width for size.
type tiles struct {
	t    testing.TB
	o    *oracle
	size int
	read map[any]bool
}

func (o *oracle) tiles(t testing.TB, size int) *tiles {
	return &tiles{t: t, o: o, size: size, read: map[any]bool{}}
}

func (r *tiles) Tile(_ context.Context, want Tile) ([]byte, error) {
	if r.read[want] {
		r.t.Errorf("size %d: read %v twice", r.size, want)
	}
	r.read[want] = true
	span := 1 << (8 * int(want.Level)) // leaves under a hash of the tile
	begin := int(want.Index) * 256
	count := min(r.size/span-begin, 256)
	if count <= 0 || int(want.Width) != count {
		return nil, fmt.Errorf("size %d: no tile %v, want width %d", r.size, want, count)
	}
	var b []byte
	for i := begin; i < begin+count; i++ {
		h := r.o.root(i*span, (i+1)*span)
		b = append(b, h[:]...)
	}
	return b, nil
}

func (r *tiles) Leaves(_ context.Context, begin, end id.Index) ([]byte, error) {
	if key := [2]id.Index{begin, end}; r.read[key] {
		r.t.Errorf("size %d: read the leaves %v twice", r.size, key)
	} else {
		r.read[key] = true
	}
	if begin >= end || end > id.Index(r.size) || begin/TileWidth != (end-1)/TileWidth {
		return nil, fmt.Errorf("size %d: no leaves %d to %d", r.size, begin, end)
	}
	var b []byte
	for _, h := range r.o.leaves[begin:end] {
		b = append(b, h[:]...)
	}
	return b, nil
}
