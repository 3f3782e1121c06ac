package tlog

import (
	"context"
	"fmt"

	"github.com/transparency-dev/merkle/compact"

	"github.com/agentledger/agentledger/id"
)

// loadedTiles contains the decoded tiles and the leaf hashes that one Prover has read.
type loadedTiles struct {
	reader TileReader
	cache  NodeCache // may be nil

	groups  []leafGroup
	decoded []*Nodes
}

// leafGroupSize is the number of leaves under the lowest node that Nodes stores for level 0.
const leafGroupSize = 1 << leafGroupHeight

// leafGroup contains the leaf hashes from begin on, a multiple of leafGroupSize.
type leafGroup struct {
	begin  id.Index
	hashes []byte
}

// loadLeafGroup returns the leaf hashes [begin, end), which are the first leaves of a group or the
// whole group.
func (s *loadedTiles) loadLeafGroup(ctx context.Context, begin, end id.Index) ([]byte, error) {
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
	s.groups = append(s.groups, leafGroup{begin, hashes})
	return hashes, nil
}

// loadDecodedTile returns the nodes of a tile, or of a wider version of the same tile.
func (s *loadedTiles) loadDecodedTile(ctx context.Context, want Tile) (*Nodes, error) {
	for _, n := range s.decoded {
		if n.belongsToTile(want) && n.coversWidth(want) {
			return n, nil
		}
	}
	n, err := s.loadCachedTile(ctx, want)
	if err != nil {
		return nil, err
	}
	s.decoded = append(s.decoded, n)
	return n, nil
}

// loadCachedTile returns the nodes from the cache. It decodes the part that is not cached.
func (s *loadedTiles) loadCachedTile(ctx context.Context, want Tile) (*Nodes, error) {
	var n *Nodes
	if s.cache != nil {
		n = s.cache.Nodes(want.Level, want.Index)
	}
	if n != nil && !n.belongsToTile(want) {
		return nil, fmt.Errorf("cached %s: another tile: %w", want.Path(), ErrMalformed)
	}
	if n != nil && n.coversWidth(want) {
		return n, nil
	}
	hashes, err := s.reader.Tile(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", want.Path(), err)
	}
	if len(hashes) != int(want.Width)*hashSize {
		return nil, fmt.Errorf("read %s: length: %w", want.Path(), ErrMalformed)
	}
	n = n.extendToTile(want, hashes)
	if s.cache != nil {
		s.cache.Keep(n)
	}
	return n, nil
}

// readNodeHash returns the root of a perfect subtree of the tree of size leaves.
func (s *loadedTiles) readNodeHash(ctx context.Context, node compact.NodeID, size id.Index) (id.Hash, error) {
	inTile := int(node.Level % tileHeight)
	row := uint64(TileWidth) >> inTile // nodes of that height in a tile
	tile := widestTileAt(uint8(node.Level/tileHeight), node.Index/row, size)
	if inTile < lowestStoredHeight(tile.Level) {
		return s.hashFromLeaves(ctx, node, size)
	}
	nodes, err := s.loadDecodedTile(ctx, tile)
	if err != nil {
		return id.Hash{}, err
	}
	return nodes.subtreeRoot(inTile, node.Index%row), nil
}

// hashFromLeaves computes the root of a perfect subtree that is too low for Nodes to store, from
// its group of leaves.
func (s *loadedTiles) hashFromLeaves(ctx context.Context, node compact.NodeID, size id.Index) (id.Hash, error) {
	row := uint64(leafGroupSize) >> node.Level // nodes of that height over a group
	begin := id.Index(node.Index / row * leafGroupSize)
	hashes, err := s.loadLeafGroup(ctx, begin, min(begin+leafGroupSize, size))
	if err != nil {
		return id.Hash{}, err
	}
	return hashSubtree(hashes, int(node.Level), node.Index%row), nil
}
