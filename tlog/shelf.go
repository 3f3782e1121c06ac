package tlog

import (
	"context"
	"fmt"

	"github.com/transparency-dev/merkle/compact"

	"github.com/agentledger/agentledger/id"
)

// shelf is what was needed so far: tiles in decoded form, groups of leaves.
type shelf struct {
	reader TileReader
	cache  NodeCache // nil: nothing is kept

	groups  []group
	decoded []*Nodes
}

// groupSize is the number of leaves below a node of the lowest row of a crown.
const groupSize = 1 << crownHeight

// group is leaf hashes from begin on, a multiple of groupSize.
type group struct {
	begin  id.Index
	hashes []byte
}

// group returns the leaf hashes [begin, end), which are all or the first of a
// group.
func (s *shelf) group(ctx context.Context, begin, end id.Index) ([]byte, error) {
	length := int(end-begin) * hashSize
	for _, g := range s.groups {
		if g.begin == begin && len(g.hashes) >= length {
			return g.hashes[:length], nil
		}
	}
	hashes, err := s.reader.Leaves(ctx, begin, end)
	if err != nil {
		return nil, fmt.Errorf("read leaves: %w", err)
	}
	if len(hashes) != length {
		return nil, fmt.Errorf("read leaves: length: %w", ErrMalformed)
	}
	s.groups = append(s.groups, group{begin, hashes})
	return hashes, nil
}

// nodes returns a tile in decoded form, or the same tile when it was wider.
func (s *shelf) nodes(ctx context.Context, want Tile) (*Nodes, error) {
	for _, n := range s.decoded {
		if n.is(want) && n.covers(want) {
			return n, nil
		}
	}
	n, err := s.cached(ctx, want)
	if err != nil {
		return nil, err
	}
	s.decoded = append(s.decoded, n)
	return n, nil
}

// cached takes a tile from the cache, or decodes what the cache does not have
// of it.
func (s *shelf) cached(ctx context.Context, want Tile) (*Nodes, error) {
	var n *Nodes
	if s.cache != nil {
		n = s.cache.Nodes(want.Level, want.Index)
	}
	if n != nil && !n.is(want) {
		return nil, fmt.Errorf("cached %s: another tile: %w", want.Path(), ErrMalformed)
	}
	if n != nil && n.covers(want) {
		return n, nil
	}
	hashes, err := s.reader.Tile(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", want.Path(), err)
	}
	if len(hashes) != int(want.Width)*hashSize {
		return nil, fmt.Errorf("read %s: length: %w", want.Path(), ErrMalformed)
	}
	n = n.grow(want, hashes)
	if s.cache != nil {
		s.cache.Keep(n)
	}
	return n, nil
}

// readNode returns the root of a perfect subtree of the tree of size leaves.
func (s *shelf) readNode(ctx context.Context, node compact.NodeID, size id.Index) (id.Hash, error) {
	inTile := int(node.Level % tileHeight)
	row := uint64(TileWidth) >> inTile // nodes of that height in a tile
	tile := tileOf(uint8(node.Level/tileHeight), node.Index/row, size)
	if inTile < lowestOf(tile.Level) {
		return s.readLowNode(ctx, node, size)
	}
	nodes, err := s.nodes(ctx, tile)
	if err != nil {
		return id.Hash{}, err
	}
	return nodes.at(inTile, node.Index%row), nil
}

// readLowNode returns the root of a perfect subtree below the crown of its tile,
// worked out from the group of leaves that it is in.
func (s *shelf) readLowNode(ctx context.Context, node compact.NodeID, size id.Index) (id.Hash, error) {
	row := uint64(groupSize) >> node.Level // nodes of that height over a group
	begin := id.Index(node.Index / row * groupSize)
	hashes, err := s.group(ctx, begin, min(begin+groupSize, size))
	if err != nil {
		return id.Hash{}, err
	}
	return subtree(hashes, int(node.Level), node.Index%row), nil
}
