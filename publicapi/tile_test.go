package publicapi_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// levels computes the hashes of all tile levels over leaves without the tree of package tlog: level L+1 contains the
// root of every 256 hashes of level L.
func levels(leaves []id.Hash) [][]id.Hash {
	all := [][]id.Hash{leaves}
	for below := leaves; len(below) >= tlog.TileWidth; {
		var level []id.Hash
		for ; len(below) >= tlog.TileWidth; below = below[tlog.TileWidth:] {
			level = append(level, root(below[:tlog.TileWidth]))
		}
		all, below = append(all, level), level
	}
	return all
}

func root(perfect []id.Hash) id.Hash {
	if len(perfect) == 1 {
		return perfect[0]
	}
	half := len(perfect) / 2
	return tlog.NodeHash(root(perfect[:half]), root(perfect[half:]))
}

// A log can be rebuilt from its tiles. Every tile, at every width, matches the entries, and a partial bundle is a
// prefix of a wider one.
func TestTilesAgreeWithEntries(t *testing.T) {
	const size = 2*tlog.TileWidth + 37
	w := newWorld(t)
	w.append(&w.red, id.DiscloseCommitment, names("e", size)...)
	w.append(&w.blue, id.DiscloseCommitment, "e-0")
	prefix := "/o/" + w.red.id.String() + "/"
	leaves, prev := []id.Hash(nil), event.Genesis(w.red.origin())
	for _, b := range []tlog.Bundle{{Index: 0, Width: 256}, {Index: 1, Width: 256}, {Index: 2, Width: 37}} {
		whole := w.get(prefix + b.Path()).Body.Bytes()
		entries, err := tlog.ParseEntryBundle(whole, b.Width)
		if err != nil {
			t.Fatal(err)
		}
		for part := (tlog.Bundle{Index: b.Index, Width: 1}); part.Width < b.Width; part.Width++ {
			begin, err := tlog.EntryBundle(entries[:part.Width]...)
			if got := w.get(prefix + part.Path()).Body.Bytes(); err != nil || !bytes.Equal(got, begin) || !bytes.HasPrefix(whole, got) {
				t.Errorf("%s: got %d bytes, want the first %d, %v", part.Path(), len(got), len(begin), err)
			}
		}
		for _, text := range entries {
			e, err := event.ParseEntry(text)
			if err != nil || e.Prev != prev || e.Seq != uint64(len(leaves))+1 {
				t.Fatalf("entry %d: %+v, %v", len(leaves), e, err)
			}
			prev = tlog.LeafHash(text)
			leaves = append(leaves, prev)
		}
	}
	for level, hashes := range levels(leaves) {
		for index := 0; index*tlog.TileWidth < len(hashes); index++ {
			have := hashes[index*tlog.TileWidth:]
			for width := 1; width <= tlog.TileWidth; width++ {
				tile := tlog.Tile{Level: uint8(level), Index: uint64(index), Width: uint16(width)}
				if width > len(have) {
					w.missing(prefix + tile.Path())
					continue
				}
				var want []byte
				for _, h := range have[:width] {
					want = append(want, h[:]...)
				}
				if got := w.get(prefix + tile.Path()).Body.Bytes(); !bytes.Equal(got, want) {
					t.Errorf("%s: got %s..., want %s...", tile.Path(), hex.EncodeToString(got[:32]), hex.EncodeToString(want[:32]))
				}
			}
		}
	}
}

func TestTilesAreImmutable(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, names("e", 3)...)
	for _, path := range []string{"tile/0/000.p/3", "tile/entries/000.p/3"} {
		target := "/o/" + w.red.id.String() + "/" + path
		answer := w.get(target)
		h := answer.Header()
		if got, want := h.Get("Cache-Control"), "public, max-age=31536000, immutable"; got != want {
			t.Errorf("%s: got Cache-Control %q, want %q", path, got, want)
		}
		if got := h.Get("Content-Type"); got != "application/octet-stream" {
			t.Errorf("%s: got Content-Type %q", path, got)
		}
		if got := w.do(http.MethodGet, target, "If-None-Match: "+h.Get("ETag")); got.Code != http.StatusNotModified {
			t.Errorf("%s with its ETag: got %d", path, got.Code)
		}
		w.append(&w.red, id.DiscloseRecord, path[5:6])
		if again := w.get(target); again.Header().Get("ETag") != h.Get("ETag") || !bytes.Equal(again.Body.Bytes(), answer.Body.Bytes()) {
			t.Errorf("%s is another one after an append", path)
		}
	}
}

func TestTilePathsRefused(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, names("e", 300)...)
	w.append(&w.blue, id.DiscloseRecord, "e")
	for _, path := range []string{
		"", "checkpoint/", "checkpoint.txt", "Checkpoint", "tile", "tile/", "tile/0", "tile/0/", "tile/0/0", "tile/0/00", "tile/0/0000",
		"tile/00/000", "tile/-1/000", "tile/64/000", "tile/0/000/", "tile/0/x000/000", "tile/0/000.p/0", "tile/0/000.p/256",
		"tile/0/000.p/05", "tile/0/000.p/", "tile/0/000.p", "tile/0/%30%30%30", "tile//0/000", "tile/0/000.P/5", "tile/0/001",
		"tile/0/001.p/45", "tile/0/002.p/1", "tile/1/000", "tile/1/000.p/2", "tile/2/000.p/1", "tile/entries", "tile/entries/", "tile/entries/0",
		"tile/entries/001", "tile/entries/001.p/45", "tile/entries/002.p/1", "tile/entries/x001/000", "tile/entries/000/", "tile/data/000",
		"tile/0/x999/x999/x999/x999/x999/x999/999",
		"tile/0/000?x", "tile/0/000?", "tile/0/000?cosigned=1", "tile/0/001.p/44?v=2", "tile/entries/000?x=1", "tile/entries/000?", "tile/entries/001.p/44?x",
	} {
		w.missing("/o/" + w.red.id.String() + "/" + path)
	}
	w.missing("/o/" + w.blue.id.String() + "/tile/0/000")
	for _, path := range []string{"tile/1/000.p/1", "tile/0/000", "tile/0/001.p/44", "tile/entries/000", "tile/entries/001.p/44", "checkpoint?"} {
		w.get("/o/" + w.red.id.String() + "/" + path)
	}
}

func TestLogsAreNamedInOneWay(t *testing.T) {
	w := newWorld(t)
	w.append(&w.red, id.DiscloseRecord, "one")
	w.get("/o/" + w.red.id.String() + "/tile/0/000.p/1")
	for _, name := range []string{"ab000000-0000-0000-0000-000000000009", "AB000000-0000-0000-0000-000000000001", "%61b000000-0000-0000-0000-000000000001", "red", "x"} {
		for _, path := range []string{"checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1"} {
			w.missing(fmt.Sprintf("/o/%s/%s", name, path))
		}
	}
}
