package monitor

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// ErrState is wrapped if the state file is malformed, damaged, or of another log.
var ErrState = errors.New("state file can't be used")

// state is what a monitor stores between checks: the latest verified head and the data for the next
// check.
type state struct {
	head signedHead // no note before the first check
	tree *tlog.Builder
	last id.Hash // event hash of the last entry, or the genesis value

	// With a policy: the newest head with the quorum and its cosignatures, and the larger
	// verified heads, ascending.
	proven  signedHead // without a note if there is none
	waiting []sighting

	// Not stored: trees whose last entry states a key that this check accepted, and fetched statements.
	stated     []signedHead
	statements map[tlog.KeyHash]statementAnswer
}

// document is a stored state: one line of JSON, and a line with the SHA-256 of the first in hex.
// The sum detects damage but not forgery, because anyone who can write the file can also write the
// sum.
type document struct {
	Version    int      `json:"version"`
	Checkpoint string   `json:"checkpoint"`    // signed note
	LastLeaf   id.Hash  `json:"last_leaf"`     // event hash of the last entry, or the genesis value
	Tiles      [][]byte `json:"partial_tiles"` // base64, as tlog.Partials names them

	Proven  string     `json:"cosigned_checkpoint,omitzero"` // signed note with its cosignatures
	Waiting []sighting `json:"waiting,omitzero"`

	Keys []verify.AcceptedKey `json:"accepted_keys,omitzero"`
}

const (
	stateVersion = 1
	maxState     = 1 << 20 // bytes
)

// loadState reads the state. If there is no file, it returns the state of an empty log.
func (m *Monitor) loadState() (*state, error) {
	m.accepted = nil // keys accepted by an earlier check count only if its state was written
	text, err := readBounded(m.State, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return &state{tree: new(tlog.Builder), last: event.Genesis(m.origin)}, nil
	}
	if err != nil {
		return nil, err
	}
	s, err := m.parseState(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", m.State, ErrState, err)
	}
	return s, nil
}

func readBounded(name string, max int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max+1))
}

// parseState parses the output of formatState for a log with one of the keys.
func (m *Monitor) parseState(text []byte) (*state, error) {
	var d document
	if err := readSummed(text, &d); err != nil {
		return nil, err
	}
	if d.Version != stateVersion {
		return nil, fmt.Errorf("version %d is not known", d.Version)
	}
	m.accepted = d.Keys
	if _, err := m.addAccepted(); err != nil {
		return nil, err
	}
	head, err := m.openCheckpoint([]byte(d.Checkpoint), m.State)
	if err != nil {
		return nil, fmt.Errorf("of another log, or its key is not among those given: %w", err)
	}
	tree, err := restoreTree(head.Size, d.Tiles)
	if err != nil {
		return nil, err
	}
	if tree.Root() != head.Root {
		return nil, errors.New("its tiles do not lead to its root")
	}
	s := &state{head: head, tree: tree, last: d.LastLeaf, waiting: d.Waiting}
	if d.Proven != "" { // forgotten if its key is no longer given
		if proven, err := m.openCheckpoint([]byte(d.Proven), m.State); err == nil && proven.Size <= head.Size {
			s.proven = proven
		}
	}
	return s, nil
}

// restoreTree returns the builder of a tree from its partial tiles.
func restoreTree(size id.Index, tiles [][]byte) (*tlog.Builder, error) {
	hashes := make([][]id.Hash, len(tiles))
	for i, tile := range tiles {
		if len(tile)%len(id.Hash{}) != 0 || len(tile) > tlog.TileWidth*len(id.Hash{}) {
			return nil, errors.New("length of a tile")
		}
		for ; len(tile) > 0; tile = tile[len(id.Hash{}):] {
			hashes[i] = append(hashes[i], id.Hash(tile))
		}
	}
	return tlog.NewBuilder(size, hashes...)
}

// saveState replaces the state file.
func (m *Monitor) saveState(s *state) error {
	text, err := formatState(s, m.accepted)
	if err != nil {
		return err
	}
	return durable.ReplaceFile(m.State, text)
}

func formatState(s *state, accepted []verify.AcceptedKey) ([]byte, error) {
	d := document{Version: stateVersion, Checkpoint: string(s.head.note), LastLeaf: s.last, Tiles: [][]byte{},
		Proven: string(s.proven.note), Waiting: s.waiting, Keys: accepted}
	for _, t := range tlog.Partials(s.tree.Size()) {
		d.Tiles = append(d.Tiles, s.tree.Partial(t.Level))
	}
	return formatSummed(d)
}

// formatSummed renders a document as a line of JSON and a line with its SHA-256.
func formatSummed(d any) ([]byte, error) {
	line, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(line)
	return fmt.Appendf(line, "\n%x\n", sum), nil
}

// readSummed parses exactly the form that formatSummed writes.
func readSummed(text []byte, d any) error {
	line, sum, ok := bytes.Cut(text, []byte("\n"))
	want := sha256.Sum256(line)
	if !ok || string(sum) != hex.EncodeToString(want[:])+"\n" {
		return errors.New("damaged, or not a state file")
	}
	return json.Unmarshal(line, d, json.RejectUnknownMembers(true))
}
