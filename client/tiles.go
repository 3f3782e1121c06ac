package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Tiles reads a log in the layout of C2SP tlog-tiles below one URL: the service, a mirror or a
// folder on a web server. Results are well-formed but unverified: the caller MUST check them.
type Tiles struct {
	client *Client
	prefix string
}

// OpenTiles returns the log whose checkpoint is at c.BaseURL + "/checkpoint". It does no I/O. It
// never sends a token. Errors of its methods are those of Client.Call.
func OpenTiles(c Config) (*Tiles, error) {
	c.Token = ""
	client, err := New(c)
	if err != nil {
		return nil, err
	}
	return &Tiles{client: client, prefix: client.base}, nil
}

// Prefix returns the URL that all paths are below, without a trailing slash.
func (t *Tiles) Prefix() string { return t.prefix }

// CloseIdle closes the idle connections.
func (t *Tiles) CloseIdle() { t.client.CloseIdle() }

// Checkpoint fetches the latest signed note, of at most tlog.MaxNote bytes, unchecked.
func (t *Tiles) Checkpoint(ctx context.Context) ([]byte, error) {
	note, err := t.fetchResource(ctx, "checkpoint", tlog.MaxNote)
	if err != nil {
		return nil, fmt.Errorf("fetch checkpoint: %w", err)
	}
	return note, nil
}

// Cosigned fetches the latest signed note that witnesses have cosigned, unchecked. A server that
// does not support this sends its latest note.
func (t *Tiles) Cosigned(ctx context.Context) ([]byte, error) {
	note, err := t.fetchResource(ctx, "checkpoint?cosigned=1", tlog.MaxNote)
	if err != nil {
		return nil, fmt.Errorf("fetch cosigned checkpoint: %w", err)
	}
	return note, nil
}

// Tile fetches the hashes of a tile, 32 bytes each. If a partial tile no longer exists, it reads
// the full tile instead.
func (t *Tiles) Tile(ctx context.Context, tile tlog.Tile) ([]byte, error) {
	hashes, err := t.fetchExactTile(ctx, tile)
	if tile.Width < tlog.TileWidth && isNotFound(err) {
		full := tile
		full.Width = tlog.TileWidth
		if hashes, errFull := t.fetchExactTile(ctx, full); errFull == nil {
			return hashes[:hashSize*int(tile.Width)], nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", tile.Path(), err)
	}
	return hashes, nil
}

const hashSize = len(id.Hash{})

func (t *Tiles) fetchExactTile(ctx context.Context, tile tlog.Tile) ([]byte, error) {
	want := hashSize * int(tile.Width)
	hashes, err := t.fetchResource(ctx, tile.Path(), int64(want))
	if err == nil && len(hashes) != want {
		err = malformedAnswer(fmt.Errorf("tile of %d bytes, not %d: %w", len(hashes), want, tlog.ErrMalformed))
	}
	return hashes, err
}

// Entries fetches the entries of a bundle, each of at most maxEntry bytes. If a partial bundle no
// longer exists, it reads the full bundle instead.
func (t *Tiles) Entries(ctx context.Context, bundle tlog.Bundle, maxEntry int) ([][]byte, error) {
	entries, err := t.fetchExactEntries(ctx, bundle, maxEntry)
	if bundle.Width < tlog.TileWidth && isNotFound(err) {
		full := bundle
		full.Width = tlog.TileWidth
		if entries, errFull := t.fetchExactEntries(ctx, full, maxEntry); errFull == nil {
			return entries[:bundle.Width], nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("fetch %s: %w", bundle.Path(), err)
	}
	return entries, nil
}

func (t *Tiles) fetchExactEntries(ctx context.Context, bundle tlog.Bundle, maxEntry int) ([][]byte, error) {
	content, err := t.fetchResource(ctx, bundle.Path(), int64(bundle.Width)*int64(2+maxEntry))
	if err != nil {
		return nil, err
	}
	entries, err := tlog.ParseEntryBundle(content, bundle.Width)
	if err != nil {
		return nil, malformedAnswer(err)
	}
	return entries, nil
}

func (t *Tiles) fetchResource(ctx context.Context, path string, max int64) ([]byte, error) {
	return t.client.sendWithRetries(ctx, call{method: http.MethodGet, path: "/" + path, media: "*/*", max: max})
}

func isNotFound(err error) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Status == http.StatusNotFound
}

// At returns the tiles of the tree of the first size leaves, for tlog.NewProver.
func (t *Tiles) At(size id.Index) tlog.TileReader { return &tree{tiles: t, size: size} }

// tree reads each tile with the width that it has at one size.
type tree struct {
	tiles *Tiles
	size  id.Index
}

// Tile implements tlog.TileReader.
func (t *tree) Tile(ctx context.Context, tile tlog.Tile) ([]byte, error) {
	return t.tiles.Tile(ctx, tile)
}

// Leaves implements tlog.TileReader.
func (t *tree) Leaves(ctx context.Context, begin, end id.Index) ([]byte, error) {
	first := begin / tlog.TileWidth * tlog.TileWidth
	if begin >= end || end > t.size || end-first > tlog.TileWidth {
		return nil, fmt.Errorf("leaves: range: %w", tlog.ErrMalformed)
	}
	width := min(t.size-first, tlog.TileWidth)
	hashes, err := t.tiles.Tile(ctx, tlog.Tile{Index: uint64(first / tlog.TileWidth), Width: uint16(width)})
	if err != nil {
		return nil, err
	}
	return hashes[hashSize*int(begin-first) : hashSize*int(end-first)], nil
}

// KeyStatement fetches the bundle of the event that states a log key. If no event states the key,
// the error is an *Error with status 404. Check the bundle with verify.CheckKeyStatement.
func (t *Tiles) KeyStatement(ctx context.Context, key tlog.KeyHash) (*verify.Bundle, error) {
	text, err := t.fetchResource(ctx, "keys/"+key.String(), maxStatement)
	if err != nil {
		return nil, fmt.Errorf("fetch key statement: %w", err)
	}
	return parseKeyStatement(text)
}

func parseKeyStatement(text []byte) (*verify.Bundle, error) {
	b, err := verify.ParseBundle(text)
	if err != nil {
		return nil, fmt.Errorf("fetch key statement: %w", err)
	}
	return b, nil
}

// Successor is the log that continues a frozen log, as named by the service. Key and first event
// are unverified; verify.ReadSuccession checks the event.
type Successor struct {
	Origin   id.Origin `json:"origin"`
	LogKey   string    `json:"log_key"` // vkey
	LogIndex id.Index  `json:"log_index"`
	Record   string    `json:"record"`
	Envelope string    `json:"envelope"`
}

// Successor fetches the log's successor. If there is none, the error is an *Error with status 404.
func (t *Tiles) Successor(ctx context.Context) (Successor, error) {
	var s Successor
	text, err := t.fetchResource(ctx, "successor", 1<<20)
	if err == nil {
		if err = json.Unmarshal(text, &s); err != nil {
			err = malformedAnswer(err)
		}
	}
	if err != nil {
		return Successor{}, fmt.Errorf("fetch successor: %w", err)
	}
	return s, nil
}
