package tlog

import (
	"context"
	"fmt"
)

// shelf is the tiles that were needed so far, in both forms.
type shelf struct {
	reader TileReader
	cache  NodeCache // nil: nothing is kept

	read    []content
	decoded []*Nodes
}

// content is what TileReader returned for a tile.
type content struct {
	tile   Tile
	hashes []byte
}

// content returns the hashes of a tile.
func (s *shelf) content(ctx context.Context, want Tile) ([]byte, error) {
	end := int(want.Width) * hashSize
	for _, c := range s.read {
		if c.tile.Level == want.Level && c.tile.Index == want.Index && c.tile.Width >= want.Width {
			return c.hashes[:end], nil
		}
	}
	hashes, err := s.reader.Tile(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", want.Path(), err)
	}
	if len(hashes) != end {
		return nil, fmt.Errorf("read %s: length: %w", want.Path(), ErrMalformed)
	}
	s.read = append(s.read, content{want, hashes})
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
	hashes, err := s.content(ctx, want)
	if err != nil {
		return nil, err
	}
	n = n.grow(want, hashes)
	if s.cache != nil {
		s.cache.Keep(n)
	}
	return n, nil
}
