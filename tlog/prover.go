package tlog

import (
	"context"
	"fmt"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"

	"github.com/agentledger/agentledger/id"
)

// TileReader reads the tiles of one log.
type TileReader interface {
	// Tile returns t.Width hashes of 32 bytes. Callers only read the slice.
	Tile(ctx context.Context, t Tile) ([]byte, error)
	// Leaves returns the leaf hashes [begin, end), of 32 bytes each. They are in one tile of level
	// 0. Callers only read the slice.
	Leaves(ctx context.Context, begin, end id.Index) ([]byte, error)
}

// NodeCache caches decoded tiles of one log.
type NodeCache interface {
	// Nodes returns the nodes of a tile, or nil.
	Nodes(level uint8, index uint64) *Nodes
	// Keep offers nodes that Nodes did not return. The cache may discard them.
	Keep(n *Nodes)
}

// Root returns the root of the tree of the first size leaves.
func Root(ctx context.Context, r TileReader, size id.Index) (id.Hash, error) {
	return NewProver(r, nil).Root(ctx, size)
}

// Inclusion returns the proof that the leaf at index is in the tree of the first size
// leaves, 0 <= index < size. It is the audit path of RFC 6962 section 2.1.1: the leaf's
// sibling first.
func Inclusion(ctx context.Context, r TileReader, index, size id.Index) ([]id.Hash, error) {
	return NewProver(r, nil).Inclusion(ctx, index, size)
}

// Consistency returns the proof that the tree of the first from leaves is a prefix of the tree of
// the first to leaves, 0 <= from <= to (RFC 6962 section 2.1.2). The proof is empty if from is 0 or
// equal to to.
func Consistency(ctx context.Context, r TileReader, from, to id.Index) ([]id.Hash, error) {
	return NewProver(r, nil).Consistency(ctx, from, to)
}

// Prover computes roots and proofs of one log for one request. With a NodeCache it uses tiles that
// are already decoded. It caches the tiles that it reads, so it reads each tile once, with the
// width that the tile has at the requested size. Prover does not check the tiles, so callers MUST
// check a proof against the root before they return it to a client. It is not safe for concurrent
// use.
type Prover struct {
	tiles loadedTiles

	// Enough for the tiles of one proof at the head.
	groups  [4]leafGroup
	decoded [8]*Nodes
}

// NewProver returns a prover over the tiles of r. cache may be nil.
func NewProver(r TileReader, cache NodeCache) *Prover {
	p := &Prover{tiles: loadedTiles{reader: r, cache: cache}}
	p.tiles.groups, p.tiles.decoded = p.groups[:0], p.decoded[:0]
	return p
}

// Leaf returns the leaf hash at index in the tree of the first size leaves,
// 0 <= index < size.
func (p *Prover) Leaf(ctx context.Context, index, size id.Index) (id.Hash, error) {
	if index >= size || size > MaxSize {
		return id.Hash{}, fmt.Errorf("leaf hash: index or size out of range: %w", ErrMalformed)
	}
	leaf, err := p.tiles.readNodeHash(ctx, compact.NewNodeID(0, uint64(index)), size)
	if err != nil {
		return id.Hash{}, fmt.Errorf("leaf hash: %w", err)
	}
	return leaf, nil
}

// Root returns the root of the tree of the first size leaves.
func (p *Prover) Root(ctx context.Context, size id.Index) (id.Hash, error) {
	if size == 0 {
		return EmptyRoot(), nil
	}
	if size > MaxSize {
		return id.Hash{}, fmt.Errorf("tree root: size: %w", ErrMalformed)
	}
	var buf [64]compact.NodeID
	var subtrees [64]id.Hash
	n := 0
	for _, node := range compact.RangeNodes(0, uint64(size), buf[:0]) {
		h, err := p.tiles.readNodeHash(ctx, node, size)
		if err != nil {
			return id.Hash{}, fmt.Errorf("tree root: %w", err)
		}
		subtrees[n] = h
		n++
	}
	return foldSubtrees(subtrees[:n]), nil
}

// Inclusion returns the same proof as the function Inclusion.
func (p *Prover) Inclusion(ctx context.Context, index, size id.Index) ([]id.Hash, error) {
	if index >= size || size > MaxSize {
		return nil, fmt.Errorf("inclusion proof: index or size out of range: %w", ErrMalformed)
	}
	nodes, err := proof.Inclusion(uint64(index), uint64(size))
	if err != nil {
		return nil, fmt.Errorf("inclusion proof: %w: %w", ErrMalformed, err)
	}
	hashes, err := p.readProofHashes(ctx, nodes, size)
	if err != nil {
		return nil, fmt.Errorf("inclusion proof: %w", err)
	}
	return hashes, nil
}

// Consistency returns the same proof as the function Consistency.
func (p *Prover) Consistency(ctx context.Context, from, to id.Index) ([]id.Hash, error) {
	if from > to || to > MaxSize {
		return nil, fmt.Errorf("consistency proof: sizes out of range: %w", ErrMalformed)
	}
	if from == 0 || from == to {
		return nil, nil
	}
	nodes, err := proof.Consistency(uint64(from), uint64(to))
	if err != nil {
		return nil, fmt.Errorf("consistency proof: %w: %w", ErrMalformed, err)
	}
	hashes, err := p.readProofHashes(ctx, nodes, to)
	if err != nil {
		return nil, fmt.Errorf("consistency proof: %w", err)
	}
	return hashes, nil
}

// readProofHashes reads the hashes of a proof in the tree of size leaves. If the right edge of the
// tree cuts a node, the proof contains one root over several perfect subtrees, whose hashes are in
// nodes from the smallest subtree to the largest.
func (p *Prover) readProofHashes(ctx context.Context, nodes proof.Nodes, size id.Index) ([]id.Hash, error) {
	_, begin, end := nodes.Ephem()
	hashes := make([]id.Hash, 0, len(nodes.IDs)-max(end-begin-1, 0))
	for i, node := range nodes.IDs {
		h, err := p.tiles.readNodeHash(ctx, node, size)
		if err != nil {
			return nil, err
		}
		if begin < i && i < end {
			last := &hashes[len(hashes)-1]
			*last = NodeHash(h, *last)
			continue
		}
		hashes = append(hashes, h)
	}
	return hashes, nil
}
