package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
)

// manifestFormat is the format of backups that this package writes and reads.
const manifestFormat = 1

// Manifest lists the files of a backup.
type Manifest struct {
	Format  int       `json:"format"`
	MadeAt  time.Time `json:"made_at"`
	Version string    `json:"version"` // of the program that made the backup
	Ledgers int       `json:"ledgers"`
	Events  id.Index  `json:"events"` // of all ledgers
	Faults  int       `json:"faults"` // ledgers whose head could not be read
	Files   []File    `json:"files"`  // by name; without the manifest

	// Authenticator authenticates the rest of the manifest, in hex, under a key derived from the master key. Backups
	// of older programs have none.
	Authenticator string `json:"authenticator,omitempty"`
}

// purpose is the purpose of the authenticators of backups.
const purpose = "agentledger/backup/v1"

// authenticate sets the authenticator.
func (m *Manifest) authenticate(keyring *seal.Keyring) error {
	m.Authenticator = ""
	text, err := m.text()
	if err != nil {
		return err
	}
	mac := keyring.Authenticate(purpose, text)
	m.Authenticator = hex.EncodeToString(mac[:])
	return nil
}

// checkAuthenticator returns an error that wraps ErrUnauthenticated if no key of the ring authenticates the manifest.
// If keyring is nil, it checks nothing.
func (m Manifest) checkAuthenticator(keyring *seal.Keyring) error {
	if keyring == nil {
		return nil
	}
	if m.Authenticator == "" {
		return fmt.Errorf("%w: it has no authenticator: it was made by an older program, or the authenticator was removed", ErrUnauthenticated)
	}
	mac, malformed := hex.DecodeString(m.Authenticator)
	m.Authenticator = ""
	text, err := m.text()
	if err != nil {
		return err
	}
	if malformed != nil || !keyring.IsAuthentic(purpose, text, mac) {
		return fmt.Errorf("%w: its authenticator does not match: it was changed after it was made, or it belongs to a service with "+
			"another master key", ErrUnauthenticated)
	}
	return nil
}

// File is one file of a backup.
type File struct {
	Name   string `json:"name"` // below the backup, with "/"
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Name returns a name for the content of the backup: the SHA-256 of its whole manifest, in hex. Two backups have the
// same name only if all their files are the same.
func (m Manifest) Name() (string, error) {
	text, err := m.text()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// text returns the content of the manifest's file.
func (m Manifest) text() ([]byte, error) {
	text, err := json.Marshal(m, jsontext.WithIndent("  "))
	return append(text, '\n'), err
}

// Bytes returns the sum of all sizes.
func (m Manifest) Bytes() (sum int64) {
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

// file returns the file with that name, or the zero value.
func (m Manifest) file(name string) File {
	i, found := slices.BinarySearchFunc(m.Files, name,
		func(f File, name string) int { return strings.Compare(f.Name, name) })
	if !found {
		return File{}
	}
	return m.Files[i]
}

func (m Manifest) write(to target) error {
	text, err := m.text()
	if err != nil {
		return err
	}
	return to.putFile(manifestName, int64(len(text)), bytes.NewReader(text))
}

// fileName matches the names in a backup. No name can be a path out of its directory.
var fileName = regexp.MustCompile(`^(?:heads\.jsonl|db/[A-Za-z0-9][A-Za-z0-9._-]{0,120})$`)

// parseManifest parses a manifest and validates it.
func parseManifest(text []byte) (m Manifest, err error) {
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrDamaged, manifestName, err)
	}
	if m.Format != manifestFormat {
		return m, fmt.Errorf("the backup has format %d, and this program reads format %d", m.Format, manifestFormat)
	}
	last := ""
	for _, f := range m.Files {
		if !fileName.MatchString(f.Name) || f.Name <= last || f.Size < 0 {
			return m, fmt.Errorf("%w: %s lists the file %q", ErrDamaged, manifestName, f.Name)
		}
		last = f.Name
	}
	if m.file(headsName).SHA256 == "" {
		return m, fmt.Errorf("%w: %s does not list %s", ErrDamaged, manifestName, headsName)
	}
	return m, nil
}

// Backup is a complete backup in a directory. A nil Backup has no files.
type Backup struct {
	Manifest
	dir string
}

// Open reads the manifest of the backup in dir.
func Open(dir string) (*Backup, error) {
	text, err := readRegular(filepath.Join(dir, manifestName), maxManifest)
	if err != nil {
		return nil, fmt.Errorf("open backup: %w", err)
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("open backup %s: %w", dir, err)
	}
	return &Backup{m, dir}, nil
}

func (b *Backup) path(name string) string { return filepath.Join(b.dir, name) }

// has reports whether a backup contains a file with that name and size.
func (b *Backup) has(name string, size int64) bool {
	if b == nil {
		return false
	}
	f := b.file(name)
	return f.Name == name && f.Size == size
}
