package tlog

import (
	"errors"
	"testing"

	"github.com/agentledger/agentledger/id"
)

func TestEdgeRootEqualsTheDefinition(t *testing.T) {
	o := newOracle(600)
	var e Edge
	for n := range 600 {
		if got, want := e.Root(), o.root(0, n); got != want || e.Size() != id.Index(n) {
			t.Fatalf("size %d: got %v, want %v", n, got, want)
		}
		again, err := NewEdge(e.Size(), e.Hashes())
		if err != nil || again.Root() != e.Root() {
			t.Fatalf("size %d: restored edge: %v", n, err)
		}
		e.Append(o.leaves[n])
	}
}

func TestEdgeClonesAreIndependent(t *testing.T) {
	o := newOracle(40)
	for n := range 39 {
		var e Edge
		for _, leaf := range o.leaves[:n] {
			e.Append(leaf)
		}
		other := e.Clone()
		other.Append(id.Hash{1})
		e.Append(o.leaves[n])
		if got, want := e.Root(), o.root(0, n+1); got != want {
			t.Errorf("size %d: got %v, want %v", n+1, got, want)
		}
		if other.Root() == e.Root() {
			t.Errorf("size %d: another leaf has the same root", n+1)
		}
	}
}

func TestNewEdgeRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   id.Index
		hashes int
	}{
		{"hash in an empty tree", 0, 1},
		{"hash missing", 3, 1},
		{"one hash too many", 4, 2},
		{"size above the limit", MaxSize + 1, 1},
	} {
		if _, err := NewEdge(c.size, make([]id.Hash, c.hashes)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, want %v", c.name, err, ErrMalformed)
		}
	}
}
