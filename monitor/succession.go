package monitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify"
)

// Predecessor is a frozen log that another log succeeds. The first event of the successor names the
// last checkpoint of the predecessor. The two logs are one history only if this checkpoint and the
// stored head of the predecessor are equal, or one extends the other.
type Predecessor struct {
	Log   *client.Tiles
	Keys  []tlog.VerifierKey
	State string // file with its stored head; it is only read
}

// SuccessionReport is the first event's statement about the predecessor, with the stored head that
// it was compared with.
type SuccessionReport struct {
	Predecessor id.Origin `json:"predecessor"`
	LastSize    id.Index  `json:"last_size"` // of the last checkpoint that the log's first event names
	KeptSize    id.Index  `json:"kept_size"` // of the predecessor's stored head; 0 if there is none
	Reason      string    `json:"reason"`
}

// checkSuccession checks the first event of a verified log against the predecessor's stored head.
// The error is a Finding, or the reason why they could not be compared.
func (m *Monitor) checkSuccession(ctx context.Context, s *state, r *Report) error {
	if m.Predecessor == nil {
		return nil
	}
	if err := m.compareSuccession(ctx, s, r); err != nil {
		return fmt.Errorf("succession: %w", err)
	}
	return nil
}

func (m *Monitor) compareSuccession(ctx context.Context, s *state, r *Report) error {
	before, err := New(Options{Log: m.Predecessor.Log, Keys: m.Predecessor.Keys, State: m.Predecessor.State})
	if err != nil {
		return err
	}
	if before.origin.Next() != m.origin {
		return fmt.Errorf("%s is not the log that succeeds %s", m.origin, before.origin)
	}
	if s.head.Size == 0 {
		return errors.New("the log is empty: it does not name its predecessor yet")
	}
	statement, err := m.readFirstEvent(ctx, s)
	if err != nil {
		return err
	}
	stored, err := before.loadKeptState()
	if err != nil {
		return err
	}
	note := []byte(statement.Checkpoint)
	if err := findingIn(before.followKeys(ctx, stored, note)); err != nil {
		return err
	}
	last, err := before.openCheckpoint(note, "the first event of "+string(m.origin))
	if err != nil {
		return fmt.Errorf("the last checkpoint that it names of %s: %w", before.origin, err)
	}
	r.Succession = &SuccessionReport{Predecessor: before.origin, LastSize: last.Size, KeptSize: stored.head.Size,
		Reason: statement.Reason}
	return before.checkOneHistory(ctx, stored, last)
}

// loadKeptState reads the state. Without a file it has no head.
func (m *Monitor) loadKeptState() (*state, error) {
	if _, err := os.Stat(m.State); errors.Is(err, fs.ErrNotExist) {
		return &state{tree: new(tlog.Builder)}, nil
	}
	s, err := m.loadState()
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return s, nil
}

// readFirstEvent fetches the first event of the log and checks it against the verified head.
func (m *Monitor) readFirstEvent(ctx context.Context, s *state) (verify.Succession, error) {
	shown, err := m.Predecessor.Log.Successor(ctx)
	if err != nil {
		return verify.Succession{}, err
	}
	if shown.Origin != m.origin {
		return verify.Succession{}, fmt.Errorf("%s names another successor: %s", m.Predecessor.Log.Prefix(),
			shown.Origin)
	}
	entries, err := m.Log.Entries(ctx, tlog.Bundle{Width: uint16(min(s.head.Size, tlog.TileWidth))}, event.MaxEntryLen)
	if err != nil {
		return verify.Succession{}, err
	}
	proof, err := tlog.NewProver(m.Log.At(s.head.Size), nil).Inclusion(ctx, 0, s.head.Size)
	if err != nil {
		return verify.Succession{}, err
	}
	content := map[string][]byte{"record.json": []byte(shown.Record), "envelope.json": []byte(shown.Envelope),
		"entry.json": entries[0]}
	tampered := func(what string) error {
		return &Finding{Kind: Tampering, What: what, Known: s.head.asEvidence(), Shown: s.head.asEvidence(),
			Content: content}
	}
	if tlog.CheckInclusion(0, s.head.Size, tlog.LeafHash(entries[0]), proof, s.head.Root) != nil {
		return verify.Succession{}, tampered("its first entry is not in the tree of its signed head")
	}
	entry, err := event.ParseEntry(entries[0])
	if err != nil {
		return verify.Succession{}, tampered("its first entry is not in the form of one")
	}
	statement, err := verify.ReadSuccession(m.origin, entry, []byte(shown.Record), []byte(shown.Envelope))
	if err != nil {
		return statement, tampered("its first event does not name the log that it succeeds: " + err.Error())
	}
	return statement, nil
}

// checkOneHistory checks that the stored head and the last checkpoint are of one history.
func (m *Monitor) checkOneHistory(ctx context.Context, stored *state, last signedHead) error {
	switch {
	case stored.head.note == nil:
		return nil
	case stored.head.Size <= last.Size:
		return m.explainUnread(m.checkExtends(ctx, stored.head, last))
	}
	if root, ok := rootAtSize(stored.tree, last.Size); ok {
		if root == last.Root {
			return nil
		}
		return &Finding{Kind: Fork, Known: stored.head.asEvidence(), Shown: last.asEvidence(),
			What: "the successor names a last checkpoint that the kept head does not extend"}
	}
	return m.explainUnread(m.checkExtends(ctx, last, stored.head))
}

// explainUnread adds the purpose of the comparison to an error that is not a Finding.
func (m *Monitor) explainUnread(err error) error {
	var f *Finding
	if err == nil || errors.As(err, &f) {
		return err
	}
	return fmt.Errorf("the stored head of %s and the last checkpoint that its successor names "+
		"can't be compared: %w",
		m.origin, err)
}

// rootAtSize returns the root of a tree at a smaller size. ok is false if the partial tiles do not
// suffice.
func rootAtSize(tree *tlog.Builder, size id.Index) (root id.Hash, ok bool) {
	if size == 0 {
		return tlog.EmptyRoot(), true
	}
	if tree.Size()/tlog.TileWidth != size/tlog.TileWidth {
		return root, false
	}
	var tiles [][]byte
	for _, t := range tlog.Partials(size) {
		tile := tree.Partial(t.Level)
		if t.Level == 0 {
			tile = tile[:len(id.Hash{})*int(t.Width)]
		}
		tiles = append(tiles, tile)
	}
	smaller, err := restoreTree(size, tiles)
	if err != nil {
		return root, false
	}
	return smaller.Root(), true
}
