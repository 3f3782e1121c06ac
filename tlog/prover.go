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
}

// NodeReader reads the tiles of one log in decoded form.
type NodeReader interface {
	// Nodes returns the tile t or the same tile when it was wider.
	Nodes(ctx context.Context, t Tile) (*Nodes, error)
}

// Root returns the root of the tree of the first size leaves.
func Root(ctx context.Context, r TileReader, size id.Index) (id.Hash, error) {
	return NewProver(decoder{r}).Root(ctx, size)
}

// Inclusion returns the proof that the leaf at index is in the tree of the
// first size leaves, 0 <= index < size: the audit path of RFC 6962 section
// 2.1.1, the leaf's sibling first.
func Inclusion(ctx context.Context, r TileReader, index, size id.Index) ([]id.Hash, error) {
	return NewProver(decoder{r}).Inclusion(ctx, index, size)
}

// Consistency returns the proof that the tree of the first from leaves is a
// prefix of that of the first to leaves, 0 <= from <= to: RFC 6962 section
// 2.1.2. It has no hashes when from is 0 or to.
func Consistency(ctx context.Context, r TileReader, from, to id.Index) ([]id.Hash, error) {
	return NewProver(decoder{r}).Consistency(ctx, from, to)
}

// decoder is a NodeReader that decodes each tile anew.
type decoder struct{ tiles TileReader }

func (d decoder) Nodes(ctx context.Context, t Tile) (*Nodes, error) {
	hashes, err := d.tiles.Tile(ctx, t)
	if err != nil {
		return nil, err
	}
	return DecodeTile(t, hashes)
}

// Prover makes roots and proofs from decoded tiles, the fast way for whoever
// keeps them. It asks for each tile at most once in a call, with the exact
// width that the tile has in a tree of the size asked for. It does not check
// what the tiles say: whoever shows a proof checks it against the root first.
// It is safe for concurrent use when its reader is.
type Prover struct{ reader NodeReader }

// NewProver returns a prover over the tiles of r.
func NewProver(r NodeReader) Prover { return Prover{reader: r} }

// Root is the function Root.
func (p Prover) Root(ctx context.Context, size id.Index) (id.Hash, error) {
	if size == 0 {
		return EmptyRoot(), nil
	}
	if size > MaxSize {
		return id.Hash{}, fmt.Errorf("tree root: size: %w", ErrMalformed)
	}
	root, err := newTree(p.reader, size).span(ctx, bits.Len64(uint64(MaxSize)), 0)
	if err != nil {
		return id.Hash{}, fmt.Errorf("tree root: %w", err)
	}
	return root, nil
}

// Inclusion is the function Inclusion.
func (p Prover) Inclusion(ctx context.Context, index, size id.Index) ([]id.Hash, error) {
	if index >= size || size > MaxSize {
		return nil, fmt.Errorf("inclusion proof: index or size out of range: %w", ErrMalformed)
	}
	proof, err := newTree(p.reader, size).path(ctx, nil, uint64(index), 0)
	if err != nil {
		return nil, fmt.Errorf("inclusion proof: %w", err)
	}
	return proof, nil
}

// Consistency is the function Consistency.
func (p Prover) Consistency(ctx context.Context, from, to id.Index) (proof []id.Hash, err error) {
	if from > to || to > MaxSize {
		return nil, fmt.Errorf("consistency proof: sizes out of range: %w", ErrMalformed)
	}
	if from == 0 || from == to {
		return nil, nil
	}
	t := newTree(p.reader, to)
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
