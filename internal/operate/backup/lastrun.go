package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/durable"
)

// noteName is the name of the note's file in the data directory.
const noteName = "backup.json"

// maxNote bounds the file in bytes.
const maxNote = 64 << 10

// Verification is the outcome of re-verifying the ledgers of a backup.
type Verification string

// Verifications.
const (
	NotVerified Verification = "none"
	Whole       Verification = "whole"
	Failed      Verification = "failed"
)

// VerificationFor returns the outcome of a verification that ended with err, or NotVerified if none was requested. An
// interrupted verification proves nothing about the backup.
func VerificationFor(requested bool, err error) Verification {
	switch {
	case !requested || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return NotVerified
	case err == nil:
		return Whole
	}
	return Failed
}

// Note describes the latest backup. The command that made the backup writes it to the data directory, where the
// service reads it. Copies that were made in another way have no note.
type Note struct {
	Path         string       `json:"path"`
	MadeAt       time.Time    `json:"made_at"`
	Ledgers      int          `json:"ledgers"`
	Events       uint64       `json:"events"`
	Bytes        int64        `json:"bytes"`
	Faults       int          `json:"faults"` // ledgers whose head could not be read
	Verification Verification `json:"verification"`

	// LastFailure is the last verification that failed, or the last backup that was found to be damaged. A successful
	// verification removes it.
	LastFailure *Failure `json:"last_failure,omitempty"`
}

// Failure is a verification that failed.
type Failure struct {
	Path   string    `json:"path"`    // of the backup
	MadeAt time.Time `json:"made_at"` // of the command's own backup
}

// failure returns the failure that n records. Older programs wrote no last_failure.
func (n *Note) failure() *Failure {
	switch {
	case n == nil:
		return nil
	case n.LastFailure == nil && n.Verification == Failed:
		return &Failure{Path: n.Path, MadeAt: n.MadeAt}
	}
	return n.LastFailure
}

// WriteNote durably writes the note about a backup to a data directory. It keeps a failure in the previous note until
// a backup is verified completely.
func (m Made) WriteNote(dir string, v Verification) error {
	n := Note{Path: m.Path, MadeAt: m.MadeAt, Ledgers: m.Ledgers, Events: uint64(m.Events),
		Bytes: m.Bytes(), Faults: m.Faults, Verification: v}
	switch {
	case v == Failed:
		n.LastFailure = &Failure{Path: m.Path, MadeAt: m.MadeAt}
	case v == Whole:
	case m.Damaged != nil:
		n.LastFailure = &Failure{Path: m.Damaged.Path, MadeAt: m.MadeAt}
	default:
		before, _ := ReadNote(dir) // a note that can't be read is replaced
		n.LastFailure = before.failure()
	}
	text, err := json.Marshal(n)
	if err == nil {
		err = durable.ReplaceFile(filepath.Join(dir, noteName), text)
	}
	if err != nil {
		return fmt.Errorf("write the note of the backup: %w", err)
	}
	return nil
}

// ReadNote reads the note in a data directory. It returns nil if there is none.
func ReadNote(dir string) (*Note, error) {
	f, err := os.Open(filepath.Join(dir, noteName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the note of the backup: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxNote))
	var n Note
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return nil, fmt.Errorf("read the note of the backup: %w", err)
	}
	n.LastFailure = n.failure()
	return &n, nil
}
