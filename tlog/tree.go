package tlog

import (
	"context"

	"github.com/agentledger/agentledger/id"
)

// tree answers for nodes of the tree of size leaves, size > 0. Node i of a
// height stands over the leaves [i<<height, (i+1)<<height), as far as there are
// any.
type tree struct {
	tiles *shelf
	size  id.Index
}

// path appends to proof the siblings of the nodes from node index>>height up to
// the root. A node at the right end of an odd row has none.
func (t tree) path(ctx context.Context, proof []id.Hash, index uint64, height int) ([]id.Hash, error) {
	for last := uint64(t.size - 1); last>>height > 0; height++ {
		sibling := index>>height ^ 1
		if sibling > last>>height {
			continue
		}
		h, err := t.span(ctx, height, sibling)
		if err != nil {
			return nil, err
		}
		proof = append(proof, h)
	}
	return proof, nil
}

// span returns the root over the leaves of node i of a height, which has at
// least one. Where the right edge cuts it, that is made from several nodes.
func (t tree) span(ctx context.Context, height int, i uint64) (id.Hash, error) {
	begin, end := i<<height, min((i+1)<<height, uint64(t.size))
	if end-begin == 1<<height {
		return t.node(ctx, height, i)
	}
	var subtrees [64]id.Hash
	n := 0
	for ; begin < end; height-- {
		if end-begin < 1<<height {
			continue
		}
		h, err := t.node(ctx, height, begin>>height)
		if err != nil {
			return id.Hash{}, err
		}
		subtrees[n] = h
		n++
		begin += 1 << height
	}
	return fold(subtrees[:n]), nil
}

// node returns the root of a perfect subtree.
func (t tree) node(ctx context.Context, height int, i uint64) (id.Hash, error) {
	inTile := height % tileHeight
	row := uint64(TileWidth) >> inTile // nodes of that height in a tile
	tile := tileOf(uint8(height/tileHeight), i/row, t.size)
	if inTile < lowestOf(tile.Level) {
		return t.low(ctx, height, i)
	}
	nodes, err := t.tiles.nodes(ctx, tile)
	if err != nil {
		return id.Hash{}, err
	}
	return nodes.at(inTile, i%row), nil
}

// low returns the root of a perfect subtree below the crown of its tile, worked
// out from the group of leaves that it is in.
func (t tree) low(ctx context.Context, height int, i uint64) (id.Hash, error) {
	row := uint64(groupSize) >> height // nodes of that height over a group
	begin := id.Index(i / row * groupSize)
	hashes, err := t.tiles.group(ctx, begin, min(begin+groupSize, t.size))
	if err != nil {
		return id.Hash{}, err
	}
	return subtree(hashes, height, i%row), nil
}
