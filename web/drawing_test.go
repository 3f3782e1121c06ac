package web

import (
	"math/bits"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/agentledger/agentledger/id"
)

// proofPath returns the ranges of entries below the hashes of PATH(m, D[begin:end]) of RFC 9162, section 2.1.3.1, deepest first.
func proofPath(m, begin, end id.Index) []id.Range {
	if end-begin == 1 {
		return nil
	}
	k := id.Index(1)
	for 2*k < end-begin {
		k *= 2
	}
	if m < begin+k {
		return append(proofPath(m, begin, begin+k), id.Range{Begin: begin + k, End: end})
	}
	return append(proofPath(m, begin+k, end), id.Range{Begin: begin, End: begin + k})
}

// checkDrawing compares a drawing with the tree of RFC 9162.
func checkDrawing(t *testing.T, d *drawing, size id.Index, marked *id.Index) {
	t.Helper()
	next, x := id.Index(0), px(0)
	var rings []id.Range
	var walk func(n, parent *node)
	walk = func(n, parent *node) {
		if n.X < 0 || n.X > px(d.Width) || n.Y < 0 || n.Y > px(d.Height) || parent != nil && (n.Y <= parent.Y || n.Line == "") {
			t.Fatalf("size %d: node %d to %d is at %v, %v of %d, %d", size, n.Begin, n.End, n.X, n.Y, d.Width, d.Height)
		}
		if want := marked != nil && n.Begin <= *marked && *marked < n.End; n.Lit != want {
			t.Fatalf("size %d, marked %v: node %d to %d is lit: %t", size, marked, n.Begin, n.End, n.Lit)
		}
		if n.Ring {
			rings = append(rings, id.Range{Begin: n.Begin, End: n.End})
		}
		if n.Left == nil {
			half := max(n.Width, n.Square) / 2
			if n.Begin != next || n.X-half < x-0.01 || n.X+half > px(d.Width) {
				t.Fatalf("size %d: node %d to %d at %v follows entry %d at %v", size, n.Begin, n.End, n.X, next, x)
			}
			if isSquare := n.Entries() == 1; isSquare != (n.Square > 0) || isSquare == (n.Width > 0) || bits.OnesCount64(uint64(n.Entries())) != 1 {
				t.Fatalf("size %d: node %d to %d: square %v, width %v", size, n.Begin, n.End, n.Square, n.Width)
			}
			next, x = n.End, n.X+half
			return
		}
		k := id.Index(1)
		for 2*k < n.Entries() {
			k *= 2
		}
		if n.Left.Begin != n.Begin || n.Left.End != n.Begin+k || n.Right.Begin != n.Left.End || n.Right.End != n.End {
			t.Fatalf("size %d: node %d to %d is split at %d and %d", size, n.Begin, n.End, n.Left.End, n.Right.Begin)
		}
		walk(n.Left, n)
		walk(n.Right, n)
	}
	walk(d.Root, nil)
	if next != size || d.Root.End != size {
		t.Errorf("size %d: the drawing ends at %d", size, next)
	}
	if marked != nil {
		want := map[id.Range]bool{}
		for _, r := range proofPath(*marked, 0, size) {
			want[r] = true
		}
		if len(rings) != len(want) {
			t.Errorf("size %d, entry %d: %d rings, want %d", size, *marked, len(rings), len(want))
		}
		for _, r := range rings {
			if !want[r] {
				t.Errorf("size %d, entry %d: a ring at %v, which is not in the proof", size, *marked, r)
			}
		}
	}
	if len(d.Squares) > 41+1 || len(d.Crowns) > 2*bits.Len64(uint64(size)) {
		t.Errorf("size %d: %d squares and %d crowns", size, len(d.Squares), len(d.Crowns))
	}
}

// A drawing has the nodes of the tree, and its rings are the hashes of the inclusion proof.
func TestDrawings(t *testing.T) {
	for size := range id.Index(301) {
		for _, d := range drawTrees(size, id.Hash{}, nil, nil) {
			checkDrawing(t, d, size, nil)
		}
		for entry := id.Index(0); entry < size; entry += 1 + size/64 + entry%3 {
			for _, d := range drawTrees(size, id.Hash{}, &entry, nil) {
				checkDrawing(t, d, size, &entry)
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	sizes := []id.Index{893_864, 1 << 20, 1<<20 + 1, 1<<20 - 1, 1 << 40, 1<<40 - 1, 1<<53 - 1}
	for range 60 {
		sizes = append(sizes, 1+id.Index(r.Uint64N(1<<(1+r.Uint64N(53)))))
	}
	for _, size := range sizes {
		for _, entry := range []id.Index{0, size / 3, size - 1, id.Index(r.Uint64N(uint64(size)))} {
			for _, d := range drawTrees(size, id.Hash{}, &entry, nil) {
				checkDrawing(t, d, size, &entry)
			}
		}
		for _, d := range drawTrees(size, id.Hash{}, nil, nil) {
			checkDrawing(t, d, size, nil)
		}
	}
}

// The latest entries are in the window, so that they have squares.
func TestDrawingShowsLatestEntries(t *testing.T) {
	for _, size := range []id.Index{1, 8, 40, 41, 1000, 893_864, 1 << 20, 1<<20 + 1} {
		for _, d := range drawTrees(size, id.Hash{}, nil, map[id.Index]*leaf{size - 1: {Words: strconv.Itoa(int(size))}}) {
			squares := d.Squares
			if last := squares[len(squares)-1]; last.Begin != size-1 || last.Entry == nil {
				t.Errorf("size %d: the last square is of entry %d", size, last.Begin)
			}
			if want := min(int(size), 9); len(squares) < want {
				t.Errorf("size %d: %d squares, want at least %d", size, len(squares), want)
			}
		}
	}
}
