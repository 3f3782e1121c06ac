package tlog

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/agentledger/agentledger/id"
)

// TileReader reads the tiles of one log.
type TileReader interface {
	// Tile returns t.Width hashes of 32 bytes. The slice is only read.
	Tile(ctx context.Context, t Tile) ([]byte, error)
	// Leaves returns the leaf hashes [begin, end), of 32 bytes, which are in one
	// tile of level 0. The slice is only read.
	Leaves(ctx context.Context, begin, end id.Index) ([]byte, error)
}

// NodeCache keeps tiles of one log in decoded form.
type NodeCache interface {
	// Nodes returns what is kept of a tile, nil when that is nothing.
	Nodes(level uint8, index uint64) *Nodes
	// Keep is given what Nodes did not have. It may keep it, or not.
	Keep(n *Nodes)
}

// Root returns the root of the tree of the first size leaves.
func Root(ctx context.Context, r TileReader, size id.Index) (id.Hash, error) {
	return NewProver(r, nil).Root(ctx, size)
}

// Inclusion returns the proof that the leaf at index is in the tree of the
// first size leaves, 0 <= index < size: the audit path of RFC 6962 section
// 2.1.1, the leaf's sibling first.
func Inclusion(ctx context.Context, r TileReader, index, size id.Index) ([]id.Hash, error) {
	return NewProver(r, nil).Inclusion(ctx, index, size)
}

// Consistency returns the proof that the tree of the first from leaves is a
// prefix of that of the first to leaves, 0 <= from <= to: RFC 6962 section
// 2.1.2. It has no hashes when from is 0 or to.
func Consistency(ctx context.Context, r TileReader, from, to id.Index) ([]id.Hash, error) {
	return NewProver(r, nil).Consistency(ctx, from, to)
}

// Prover makes roots and proofs of one log for one request, the fast way for
// whoever keeps decoded tiles. It remembers what it read and reads nothing twice;
// tiles with the exact width that they have in a tree of the size asked for. It does not check what the tiles say: whoever shows a proof checks it
// against the root first. It is not safe for concurrent use.
type Prover struct {
	tiles shelf

	// Room for what a proof at the head needs.
	groups  [4]group
	decoded [8]*Nodes
}

// NewProver returns a prover over the tiles of r. cache may be nil.
func NewProver(r TileReader, cache NodeCache) *Prover {
	p := &Prover{tiles: shelf{reader: r, cache: cache}}
	p.tiles.groups, p.tiles.decoded = p.groups[:0], p.decoded[:0]
	return p
}

// at returns the tree as it was with size leaves.
func (p *Prover) at(size id.Index) tree { return tree{tiles: &p.tiles, size: size} }

// Leaf returns the leaf hash at index in the tree of the first size leaves,
// 0 <= index < size.
func (p *Prover) Leaf(ctx context.Context, index, size id.Index) (id.Hash, error) {
	if index >= size || size > MaxSize {
		return id.Hash{}, fmt.Errorf("leaf hash: index or size out of range: %w", ErrMalformed)
	}
	leaf, err := p.at(size).node(ctx, 0, uint64(index))
	if err != nil {
		return id.Hash{}, fmt.Errorf("leaf hash: %w", err)
	}
	return leaf, nil
}

// Root is the function Root.
func (p *Prover) Root(ctx context.Context, size id.Index) (id.Hash, error) {
	if size == 0 {
		return EmptyRoot(), nil
	}
	if size > MaxSize {
		return id.Hash{}, fmt.Errorf("tree root: size: %w", ErrMalformed)
	}
	root, err := p.at(size).span(ctx, bits.Len64(uint64(MaxSize)), 0)
	if err != nil {
		return id.Hash{}, fmt.Errorf("tree root: %w", err)
	}
	return root, nil
}

// Inclusion is the function Inclusion.
func (p *Prover) Inclusion(ctx context.Context, index, size id.Index) ([]id.Hash, error) {
	if index >= size || size > MaxSize {
		return nil, fmt.Errorf("inclusion proof: index or size out of range: %w", ErrMalformed)
	}
	proof, err := p.at(size).path(ctx, proofRoom(size), uint64(index), 0)
	if err != nil {
		return nil, fmt.Errorf("inclusion proof: %w", err)
	}
	return proof, nil
}

// Consistency is the function Consistency.
func (p *Prover) Consistency(ctx context.Context, from, to id.Index) (proof []id.Hash, err error) {
	if from > to || to > MaxSize {
		return nil, fmt.Errorf("consistency proof: sizes out of range: %w", ErrMalformed)
	}
	if from == 0 || from == to {
		return nil, nil
	}
	t := p.at(to)
	proof = proofRoom(to)
	last, height := uint64(from-1), bits.TrailingZeros64(uint64(from))
	if from != 1<<height {
		seed, err := t.node(ctx, height, last>>height)
		if err != nil {
			return nil, fmt.Errorf("consistency proof: %w", err)
		}
		proof = append(proof, seed)
	}
	if proof, err = t.path(ctx, proof, last, height); err != nil {
		return nil, fmt.Errorf("consistency proof: %w", err)
	}
	return proof, nil
}

// proofRoom returns no hashes, with room for those of any proof at that size.
func proofRoom(size id.Index) []id.Hash { return make([]id.Hash, 0, bits.Len64(uint64(size))+1) }
