package anchor

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Receive makes notes of another process's folder durable in this one, like Put and KeepSlug. Notes that are known, or
// older than known ones, are not written. Followers of this folder do not get them.
//
// The sender is trusted: signatures are not verified. If a note is malformed, Receive stores none and returns an error
// that wraps tlog.ErrMalformed. differs contains the checkpoints that are newer or older than those of this folder:
// each ledger in memory must be consistent with them.
func (f *Folder) Receive(notes []Note) (differs []tlog.Checkpoint, err error) {
	shown := make([]tlog.Checkpoint, 0, len(notes))
	for _, n := range notes {
		if n.Slug {
			err = checkSlugNote(n.Text)
		} else {
			shown, err = appendReceived(shown, n.Text)
		}
		if err != nil {
			return nil, fmt.Errorf("receive anchors: %w", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	differs = slices.DeleteFunc(shown, f.isAnchor)
	if err := f.writeReceived(notes); err != nil {
		return differs, fmt.Errorf("receive anchors: %w", err)
	}
	return differs, nil
}

// appendReceived appends the checkpoint of a received note.
func appendReceived(shown []tlog.Checkpoint, text []byte) ([]tlog.Checkpoint, error) {
	note, err := tlog.ParseNote(text)
	if err != nil {
		return shown, err
	}
	c, err := note.ReadCheckpoint()
	if err != nil {
		return shown, err
	}
	isOfLog := func(s tlog.Signature) bool { return s.Name == string(c.Origin) }
	if !slices.ContainsFunc(note.Signatures, isOfLog) || len(text) > maxNoteBytes {
		return shown, fmt.Errorf("not signed by the log, or too long: %w", tlog.ErrMalformed)
	}
	return append(shown, c), nil
}

// checkSlugNote rejects a note of a slug that this package would not write.
func checkSlugNote(text []byte) error {
	slug, origin, err := parseSlugNote(text)
	if err != nil {
		return err
	}
	if len(text) > maxNoteBytes || !bytes.Equal(formatSlugNote(id.Slug(slug), id.Origin(origin)), text) {
		return fmt.Errorf("read slug: another spelling: %w", tlog.ErrMalformed)
	}
	return nil
}

// isAnchor reports whether a checkpoint is the anchor of its origin.
func (f *Folder) isAnchor(c tlog.Checkpoint) bool {
	known, found := f.heads[hashOrigin(c.Origin)]
	return found && known.size == c.Size && known.root == c.Root
}

// writeReceived writes the notes that are new. Slugs come first, as in the sender's folder.
func (f *Folder) writeReceived(notes []Note) error {
	var heads [][]byte
	for _, n := range notes {
		if !n.Slug {
			if h, err := parseOriginHead(n.Text); err != nil {
				return err
			} else if known, found := f.heads[h.origin]; !found || known.size < h.size {
				heads = append(heads, n.Text)
			}
			continue
		}
		slug, origin, err := parseSlugNote(n.Text)
		if err != nil {
			return err
		}
		if f.isSlugKept(id.Slug(slug), hashOriginText(origin)) {
			continue
		}
		if err := f.writeSlugNote(n.Text); err != nil {
			return err
		}
	}
	if len(heads) == 0 {
		return nil
	}
	_, _, err := f.appendHeads(heads)
	return err
}
