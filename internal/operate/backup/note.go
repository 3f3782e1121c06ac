package backup

import (
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

// noteName is the file of the note in the data directory.
const noteName = "backup.json"

// maxNote bounds the file in bytes.
const maxNote = 64 << 10

// Verification says whether the ledgers of a backup were re-verified.
type Verification string

// Verifications.
const (
	NotVerified Verification = "none"
	Whole       Verification = "whole"
	Failed      Verification = "failed"
)

// VerificationOf returns the outcome of a verification that ended with err. found is the error that says that something
// is wrong; any other error says nothing about the backup.
func VerificationOf(asked bool, err, found error) Verification {
	switch {
	case asked && err == nil:
		return Whole
	case asked && errors.Is(err, found):
		return Failed
	}
	return NotVerified
}

// Note is about the newest backup. The command that made the backup leaves it in the data directory, so that the
// service can tell. It says nothing about copies that were made in another way.
type Note struct {
	Path         string       `json:"path"`
	MadeAt       time.Time    `json:"made_at"`
	Ledgers      int          `json:"ledgers"`
	Events       uint64       `json:"events"`
	Bytes        int64        `json:"bytes"`
	Faults       int          `json:"faults"` // ledgers whose head could not be read
	Verification Verification `json:"verification"`
}

// WriteNote leaves the note about a backup in a data directory, durably.
func (m Made) WriteNote(dir string, v Verification) error {
	text, err := json.Marshal(Note{Path: m.Path, MadeAt: m.MadeAt, Ledgers: m.Ledgers, Events: uint64(m.Events),
		Bytes: m.Bytes(), Faults: m.Faults, Verification: v})
	if err == nil {
		err = durable.ReplaceFile(filepath.Join(dir, noteName), text)
	}
	if err != nil {
		return fmt.Errorf("note the backup: %w", err)
	}
	return nil
}

// ReadNote reads the note in a data directory; nil when there is none.
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
	return &n, nil
}
