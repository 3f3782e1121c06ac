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

// manifestFormat is the form of backups that this package writes and reads.
const manifestFormat = 1

// Manifest says which files a backup has.
type Manifest struct {
	Format  int       `json:"format"`
	MadeAt  time.Time `json:"made_at"`
	Version string    `json:"version"` // of the program that made the backup
	Ledgers int       `json:"ledgers"`
	Events  id.Index  `json:"events"` // of all ledgers
	Faults  int       `json:"faults"` // ledgers whose head could not be read
	Files   []File    `json:"files"`  // by name; without the manifest

	// Authenticator is of the rest of the manifest, in hex, under a key that is derived from the master key. Backups of
	// older programs have none.
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

// checkAuthenticator returns an error that wraps ErrUnauthenticated if no key of the ring vouches for the manifest. A nil
// ring checks nothing.
func (m Manifest) checkAuthenticator(keyring *seal.Keyring) error {
	if keyring == nil {
		return nil
	}
	if m.Authenticator == "" {
		return fmt.Errorf("%w: it has no authenticator: an older program made it, or somebody removed it", ErrUnauthenticated)
	}
	mac, malformed := hex.DecodeString(m.Authenticator)
	m.Authenticator = ""
	text, err := m.text()
	if err != nil {
		return err
	}
	if malformed != nil || !keyring.IsAuthentic(purpose, text, mac) {
		return fmt.Errorf("%w: its authenticator is wrong: it was changed after it was made, or it is of a service with "+
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

// Name returns the name of the backup's content: the SHA-256 of its whole manifest, in hex. So two backups have one name
// only if each of their files is the same.
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

// file returns the file of that name, the zero value for none.
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

// fileName is the form of names in a backup: no path leads out of its folder.
var fileName = regexp.MustCompile(`^(?:heads\.jsonl|db/[A-Za-z0-9][A-Za-z0-9._-]{0,120})$`)

// parseManifest reads a manifest and checks its form.
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
			return m, fmt.Errorf("%w: %s names the file %q", ErrDamaged, manifestName, f.Name)
		}
		last = f.Name
	}
	if m.file(headsName).SHA256 == "" {
		return m, fmt.Errorf("%w: %s names no %s", ErrDamaged, manifestName, headsName)
	}
	return m, nil
}

// Backup is a whole backup in a folder. A nil one has no files.
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

// has reports whether a backup names a file of that size.
func (b *Backup) has(name string, size int64) bool {
	if b == nil {
		return false
	}
	f := b.file(name)
	return f.Name == name && f.Size == size
}
