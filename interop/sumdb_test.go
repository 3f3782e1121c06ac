package interop

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	"golang.org/x/sync/errgroup"
)

// walker reads a log with golang.org/x/mod/sumdb/tlog and none of this project's code.
type walker struct {
	ctx    context.Context
	client *http.Client
	prefix *url.URL
}

// fetch requests one resource without compression.
func (w *walker) fetch(path string) ([]byte, error) {
	r, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.prefix.String()+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept-Encoding", "identity")
	answer, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

const tileHeight = 8

// Height, ReadTiles and SaveTiles make a walker a tlog.TileReader. In x/mod the paths of tiles contain their height;
// in C2SP tlog-tiles they do not, because it is always 8.
func (w *walker) Height() int { return tileHeight }

func (w *walker) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	all := make([][]byte, len(tiles))
	group, _ := errgroup.WithContext(w.ctx)
	group.SetLimit(4)
	for i, t := range tiles {
		group.Go(func() (err error) {
			all[i], err = w.fetch(strings.Replace(t.Path(), "tile/8/", "tile/", 1))
			return err
		})
	}
	return all, group.Wait()
}

func (w *walker) SaveTiles([]tlog.Tile, [][]byte) {}

// head is a checkpoint whose signature x/mod has verified.
type head struct {
	size uint64
	root tlog.Hash
	note []byte
}

// open reads a checkpoint with x/mod.
func open(text []byte, key note.Verifier) (head, error) {
	n, err := note.Open(text, note.VerifierList(key))
	if err != nil {
		return head{}, err
	}
	if n.Text[:strings.Index(n.Text, "\n")] != key.Name() {
		return head{}, errors.New("another origin")
	}
	// x/mod reads its own kind of tree, which differs only in the first line.
	_, rest, _ := strings.Cut(n.Text, "\n")
	t, err := tlog.ParseTree([]byte("go.sum database tree\n" + rest))
	return head{size: uint64(t.N), root: t.Hash, note: text}, err
}

// walk reads all entries below a head and checks them against the tiles, the tiles against the root, and each entry
// against the previous one.
func (w *walker) walk(h head, origin string) error {
	prev := tlog.Hash(genesis(origin))
	for first := uint64(0); first < h.size; first += 256 {
		width := min(256, h.size-first)
		leaves, err := w.leaves(h, first, width)
		if err != nil {
			return err
		}
		path := tlog.Tile{H: tileHeight, L: 0, N: int64(first / 256), W: int(width)}.Path()
		raw, err := w.fetch(strings.Replace(path, "tile/8/0/", "tile/entries/", 1))
		if err != nil {
			return err
		}
		for i := range width {
			text, rest, err := cut(raw)
			if err != nil {
				return fmt.Errorf("entry %d: %w", first+i, err)
			}
			if raw = rest; tlog.RecordHash(text) != leaves[i] {
				return fmt.Errorf("entry %d: another one than the tile's", first+i)
			}
			if err := linked(text, prev, first+i); err != nil {
				return err
			}
			prev = leaves[i]
		}
		if len(raw) > 0 {
			return fmt.Errorf("bundle at %d: more than its entries", first)
		}
	}
	return w.root(h)
}

// leaves reads leaf hashes that x/mod has checked against the root.
func (w *walker) leaves(h head, first, n uint64) ([]tlog.Hash, error) {
	indexes := make([]int64, n)
	for i := range indexes {
		indexes[i] = tlog.StoredHashIndex(0, int64(first)+int64(i))
	}
	return tlog.TileHashReader(tlog.Tree{N: int64(h.size), Hash: h.root}, w).ReadHashes(indexes)
}

// root recomputes the root.
func (w *walker) root(h head) error {
	tree := tlog.Tree{N: int64(h.size), Hash: h.root}
	got, err := tlog.TreeHash(tree.N, tlog.TileHashReader(tree, w))
	if err != nil {
		return err
	}
	if got != h.root {
		return errors.New("another root than the checkpoint's")
	}
	return nil
}

// cut takes an entry off a bundle.
func cut(raw []byte) (text, rest []byte, err error) {
	if len(raw) < 2 || len(raw) < 2+int(binary.BigEndian.Uint16(raw)) {
		return nil, nil, errors.New("cut off")
	}
	end := 2 + int(binary.BigEndian.Uint16(raw))
	return raw[2:end], raw[end:], nil
}

// linked checks an entry's statements about its position.
func linked(text []byte, prev tlog.Hash, index uint64) error {
	var e struct {
		Prev string `json:"prev"`
		Seq  uint64 `json:"seq"`
	}
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("entry %d: %w", index, err)
	}
	if e.Prev != fmt.Sprintf("%x", prev[:]) || e.Seq != index+1 {
		return fmt.Errorf("entry %d does not follow the one before", index)
	}
	return nil
}
