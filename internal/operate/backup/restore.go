package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/textcheck"
)

// maxManifest bounds a manifest in bytes: about a million files.
const maxManifest = 256 << 20

// Extracted represents the files of a backup in a directory, in which db is the store.
type Extracted struct {
	Manifest
	dir     string
	inPlace bool // the files are the backup itself
}

// StoreDir returns the directory of the extracted store.
func (x *Extracted) StoreDir() string { return filepath.Join(x.dir, storeFolder) }

// Extract copies the backup at path, a directory or a tar file, to dir, which must not exist, and verifies each file.
// It returns ErrDamaged if a file does not match the manifest, and ErrUnauthenticated if no key of the ring
// authenticates the manifest. If keyring is nil, it does not check the authenticator. If it fails, it removes dir.
func Extract(ctx context.Context, path, dir string, keyring *seal.Keyring) (x *Extracted, err error) {
	if _, err := os.Stat(dir); err == nil {
		return nil, fmt.Errorf("extract backup: %s: %w", dir, os.ErrExist)
	}
	to, err := newFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("extract backup: %w", err)
	}
	extract := extractFolder
	if IsArchive(path) {
		extract = extractArchive
	}
	m, err := extract(ctx, path, to, keyring)
	if err == nil {
		err = to.syncNames()
	}
	if err != nil {
		return nil, fmt.Errorf("extract backup %s: %w", path, errors.Join(err, os.RemoveAll(dir)))
	}
	return &Extracted{Manifest: m, dir: dir}, nil
}

// checking is the suffix of the directory to which Inspect extracts a tar file.
const checking = ".checking"

// Inspect is like Extract for a backup that is only read: it reads a directory in place, and extracts a tar file next
// to itself.
func Inspect(ctx context.Context, path string, keyring *seal.Keyring) (*Extracted, error) {
	if IsArchive(path) {
		if err := os.RemoveAll(path + checking); err != nil {
			return nil, fmt.Errorf("check backup: %w", err)
		}
		return Extract(ctx, path, path+checking, keyring)
	}
	m, err := extractFolder(ctx, path, nowhere{}, keyring)
	if err != nil {
		return nil, fmt.Errorf("check backup %s: %w", path, err)
	}
	return &Extracted{Manifest: m, dir: path, inPlace: true}, nil
}

// nowhere is a target that discards everything.
type nowhere struct{}

func (nowhere) putFile(_ string, _ int64, content io.Reader) error {
	_, err := io.Copy(io.Discard, content)
	return err
}

func (nowhere) linkFile(string, string) (bool, error) { return false, nil }

// Remove removes the extracted files, but never the backup.
func (x *Extracted) Remove() error {
	if x.inPlace {
		return nil
	}
	return os.RemoveAll(x.dir)
}

// MoveStore moves the extracted store to path, which must not exist, and removes the rest.
func (x *Extracted) MoveStore(path string) error {
	if err := durable.Rename(x.StoreDir(), path); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return x.Remove()
}

// CompareHeads compares the ledgers of the extracted store with the heads of the backup.
func (x *Extracted) CompareHeads(ctx context.Context, h Heads) error {
	f, err := os.Open(filepath.Join(x.dir, headsName))
	if err != nil {
		return err
	}
	n, err := h.compare(ctx, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("compare with the heads of the backup: %w", err)
	}
	if n.Faults != x.Faults {
		return fmt.Errorf("%w: %s can't be read, but only %d when the backup was made", ErrDamaged, textcheck.Count(n.Faults, "ledger"), x.Faults)
	}
	return nil
}

func extractFolder(ctx context.Context, path string, to target, keyring *seal.Keyring) (Manifest, error) {
	b, err := Open(path)
	if err != nil {
		return Manifest{}, err
	}
	if err := b.checkAuthenticator(keyring); err != nil {
		return b.Manifest, err
	}
	for _, f := range b.Files { // before anything is written
		if err := checkFile(b.path(f.Name), f.Size); err != nil {
			return b.Manifest, damaged(err)
		}
	}
	syncs.ExpectWork(ctx, b.Bytes())
	c := copier{to: to}
	for _, f := range b.Files {
		if err := c.copyFile(ctx, b.path(f.Name), f.Name, nil); err != nil {
			return b.Manifest, damaged(err)
		}
	}
	return b.Manifest, b.compareFiles(c.files)
}

// checkFile checks that path is a regular file of that size. It does not open the file.
func checkFile(path string, size int64) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", ErrDamaged, path)
	case info.Size() != size:
		return fmt.Errorf("%w: %s has %d bytes, want %d", ErrDamaged, path, info.Size(), size)
	}
	return nil
}

func extractArchive(ctx context.Context, path string, to target, keyring *seal.Keyring) (m Manifest, err error) {
	f, info, err := openRegular(path)
	if err != nil {
		return m, err
	}
	defer f.Close()
	m, err = checkEntries(entries{tar.NewReader(f), info.Size()}) // before anything is written
	if err == nil {
		err = m.checkAuthenticator(keyring)
	}
	if err != nil {
		return m, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return m, err
	}
	syncs.ExpectWork(ctx, m.Bytes())
	c := copier{to: to}
	all := entries{tar.NewReader(f), info.Size()}
	for {
		h, err := all.next()
		if err == nil && h.Name == manifestName { // which was read above
			break
		}
		if err == nil {
			err = c.putFile(ctx, h.Name, h.Size, all)
		}
		if err != nil {
			return m, damaged(err)
		}
	}
	slices.SortFunc(c.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return m, m.compareFiles(c.files)
}

// entries reads the files in the tar file of a backup. remaining is the total size that they may still have: an entry
// that claims to be longer than the tar file is sparse.
type entries struct {
	*tar.Reader
	remaining int64
}

// next returns the next entry. It returns ErrDamaged if a backup cannot contain such an entry.
func (e *entries) next() (*tar.Header, error) {
	h, err := e.Next()
	switch {
	case err != nil:
		return nil, err
	case h.Typeflag != tar.TypeReg || h.Name != manifestName && !fileName.MatchString(h.Name):
		return nil, fmt.Errorf("%w: unexpected entry %q", ErrDamaged, h.Name)
	case h.Size > e.remaining || h.Name == manifestName && h.Size > maxManifest:
		return nil, fmt.Errorf("%w: its entry %s is too long", ErrDamaged, h.Name)
	}
	e.remaining -= h.Size
	return h, nil
}

// checkEntries checks the headers of all entries up to the manifest, which is the last entry, and returns the manifest.
func checkEntries(all entries) (m Manifest, err error) {
	for {
		h, err := all.next()
		if err != nil {
			return m, damaged(err)
		}
		if h.Name != manifestName {
			continue
		}
		text, err := io.ReadAll(all)
		if err != nil {
			return m, damaged(err)
		}
		return parseManifest(text)
	}
}

// damaged wraps ErrDamaged around errors about an unexpected end or a missing file. It returns other errors unchanged.
func damaged(err error) error {
	for _, cause := range []error{io.EOF, io.ErrUnexpectedEOF, tar.ErrHeader, os.ErrNotExist} {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	return err
}

// compareFiles compares the copied files with the manifest.
func (m Manifest) compareFiles(copied []File) error {
	if len(copied) != len(m.Files) {
		return fmt.Errorf("%w: got %d files, want %d", ErrDamaged, len(copied), len(m.Files))
	}
	for i, f := range m.Files {
		if copied[i] != f {
			return fmt.Errorf("%w: %s does not match the manifest", ErrDamaged, f.Name)
		}
	}
	return nil
}
