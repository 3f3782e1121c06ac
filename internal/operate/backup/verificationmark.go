package backup

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/internal/durable"
)

// markName is the file in a backup's folder that records the outcome of its last verification.
const markName = "verification.json"

const maxMark = 1 << 12 // bytes, far more than a mark has

// mark is the outcome of the last verification of a backup.
type mark struct {
	Verification Verification `json:"verification"`
	At           time.Time    `json:"at"`
	Manifest     string       `json:"manifest_sha256"` // of the manifest that was verified
}

// isMark reports whether a file with that name is a mark, or one that a crash left unfinished.
func isMark(name string) bool {
	unfinished, _ := filepath.Match("."+markName+"-*"+durable.TemporarySuffix, name)
	return unfinished || name == markName
}

// Mark durably records the outcome of the backup's verification in its folder. A tar file has no mark.
func (m Made) Mark(v Verification, at time.Time) error {
	if IsArchive(m.Path) || v == NotVerified {
		return nil
	}
	return writeMark(m.Path, v, at)
}

func writeMark(dir string, v Verification, at time.Time) error {
	sum, err := sumManifest(dir)
	var text []byte
	if err == nil {
		text, err = json.Marshal(mark{Verification: v, At: at.UTC().Truncate(time.Second), Manifest: sum})
	}
	if err == nil {
		err = durable.ReplaceFile(filepath.Join(dir, markName), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("mark the backup: %w", err)
	}
	return nil
}

// readMark returns the outcome of the last verification of the backup in dir. It ignores a mark that can't be read or
// that is about another manifest.
func readMark(dir string) Verification {
	text, err := readRegular(filepath.Join(dir, markName), maxMark)
	var m mark
	if err != nil || json.Unmarshal(text, &m) != nil {
		return NotVerified
	}
	if sum, err := sumManifest(dir); err != nil || sum != m.Manifest {
		return NotVerified
	}
	return m.Verification
}

func sumManifest(dir string) (string, error) {
	text, err := readRegular(filepath.Join(dir, manifestName), maxManifest)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
