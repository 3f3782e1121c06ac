package tlog

import (
	"errors"
	"testing"

	"github.com/agentledger/agentledger/id"
)

func TestDecodeTileRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		tile   Tile
		length int
	}{
		{"width 0", Tile{0, 0, 0}, 0},
		{"width 257", Tile{0, 0, 257}, 257 * 32},
		{"level 64", Tile{64, 0, 1}, 32},
		{"byte missing", Tile{0, 0, 2}, 63},
		{"byte too many", Tile{0, 0, 2}, 65},
		{"hash missing", Tile{0, 0, 256}, 255 * 32},
		{"nothing", Tile{0, 0, 1}, 0},
	} {
		if _, err := DecodeTile(c.tile, make([]byte, c.length)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: got %v, want %v", c.name, err, ErrMalformed)
		}
	}
}

// The root over a tile is that of the tree whose leaves are its hashes.
func FuzzDecodeTile(f *testing.F) {
	f.Add(uint16(1), make([]byte, 32))
	f.Add(uint16(3), make([]byte, 96))
	f.Add(uint16(256), make([]byte, 8192))
	f.Fuzz(func(t *testing.T, width uint16, hashes []byte) {
		n, err := DecodeTile(Tile{Level: 1, Index: 2, Width: width}, hashes)
		if err != nil {
			return
		}
		var e Edge
		for b := hashes; len(b) > 0; b = b[32:] {
			e.Append(id.Hash(b))
		}
		if got, want := n.Root(), e.Root(); got != want || e.Size() != id.Index(width) {
			t.Errorf("%d hashes: got %v, want %v", width, got, want)
		}
	})
}
