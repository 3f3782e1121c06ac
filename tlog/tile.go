package tlog

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// MaxLevel is the highest tile level that a path can name.
const MaxLevel = 63

// Tile names a tile of hashes. Hash i is the root over the 256^Level leaves from leaf (256*Index+i)
// * 256^Level on.
type Tile struct {
	Level uint8  // 0..MaxLevel
	Index uint64 // from the left, within the level
	Width uint16 // number of hashes, 1..TileWidth; less than TileWidth in a partial tile
}

// Path returns the tile's resource name as in C2SP tlog-tiles, without the
// log's prefix: tile/0/x001/x234/067 or, partial, tile/0/x001/x234/067.p/5.
func (t Tile) Path() string {
	b := append(make([]byte, 0, 48), "tile/"...)
	b = strconv.AppendUint(b, uint64(t.Level), 10)
	return string(appendPosition(b, t.Index, t.Width))
}

// ParseTilePath accepts only the spelling that Tile.Path writes.
func ParseTilePath(path string) (Tile, error) {
	rest, hasPrefix := strings.CutPrefix(path, "tile/")
	level, position, _ := strings.Cut(rest, "/")
	n, levelOK := parseDecimal(level, MaxLevel)
	index, width, positionOK := parsePosition(position)
	if !hasPrefix || !levelOK || !positionOK {
		return Tile{}, fmt.Errorf("tile path: %w", ErrMalformed)
	}
	return Tile{Level: uint8(n), Index: index, Width: width}, nil
}

// Within reports whether a tree of that size contains all hashes of the tile.
func (t Tile) Within(size id.Index) bool {
	return rowCoversGroup(uint64(size)>>(tileHeight*uint(t.Level)), t.Index, t.Width)
}

// Bundle names an entry bundle: Width consecutive log entries from entry 256*Index on.
type Bundle struct {
	Index uint64 // from the left
	Width uint16 // number of entries, 1..TileWidth; less than TileWidth in a partial bundle
}

// Path returns the bundle's resource name as in C2SP tlog-tiles, without the log's prefix:
// tile/entries/x001/x234/067 or, partial, followed by .p/5.
func (b Bundle) Path() string {
	return string(appendPosition(append(make([]byte, 0, 48), "tile/entries"...), b.Index, b.Width))
}

// ParseBundlePath accepts only the spelling that Bundle.Path writes.
func ParseBundlePath(path string) (Bundle, error) {
	position, hasPrefix := strings.CutPrefix(path, "tile/entries/")
	index, width, ok := parsePosition(position)
	if !hasPrefix || !ok {
		return Bundle{}, fmt.Errorf("entry bundle path: %w", ErrMalformed)
	}
	return Bundle{Index: index, Width: width}, nil
}

// Within reports whether a tree of that size contains all entries of the bundle.
func (b Bundle) Within(size id.Index) bool { return rowCoversGroup(uint64(size), b.Index, b.Width) }

// rowCoversGroup reports whether a row of count items covers the group of width items
// at index.
func rowCoversGroup(count, index uint64, width uint16) bool {
	full := count / TileWidth
	return index < full || index == full && uint64(width) <= count%TileWidth
}

// widestTileAt returns the widest version of a tile in a tree of that size. The tile
// MUST have at least one hash.
func widestTileAt(level uint8, index uint64, size id.Index) Tile {
	count := uint64(size) >> (tileHeight * uint(level))
	return Tile{Level: level, Index: index, Width: uint16(min(count-index*TileWidth, TileWidth))}
}
