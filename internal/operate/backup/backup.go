// Package backup makes backups of an embedded store while it serves, and brings them back.
//
// A backup is the files of a snapshot (db/…), the signed head of each ledger (heads.jsonl) and a manifest with the
// SHA-256 of each file. It lies in a folder of its own, or in one tar file.
//
// Invariants:
//
//   - A backup has its name only when it is whole and durable. A crash leaves a folder whose name ends with ".new",
//     which the next backup into the same folder removes.
//   - Only files of backups are removed: a folder with any other file stays, however it is named.
//   - A backup shares no file with a store. Tables are shared among backups alone, as hard links.
//   - A table is linked only if it was read and has the same content as the store's own. Damage in one backup never
//     spreads to the next one.
//   - A backup is removed only if a newer one was verified whole.
//   - The ledgers of a backup are those of its heads: each head was signed from the copied files.
//   - A manifest has an authenticator under a key that is derived from the master key. Whoever only carries or keeps a
//     backup can change nothing in it.
//   - A restored store gets its place only after each file has the SHA-256 of the manifest.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

const (
	storeFolder   = "db"
	headsName     = "heads.jsonl"
	manifestName  = "manifest.json"
	tableSuffix   = ".sst" // of files that never change
	lockName      = "LOCK" // of the engine's lock file, which is no data
	archiveSuffix = ".tar"
)

// IsArchive reports whether a backup at path is one tar file.
func IsArchive(path string) bool { return strings.HasSuffix(path, archiveSuffix) }

// target is where the files of a backup, or of a restored store, are written to.
type target interface {
	// putFile writes a file of that size, which content holds.
	putFile(name string, size int64, content io.Reader) error
	// linkFile gives the file at path a second name, if that can be done.
	linkFile(name, path string) (linked bool, err error)
}

// openRegular opens a regular file. Whoever can write to a folder of backups could put something else there: a FIFO, at
// which a reader waits for ever, a device without an end, or a link to another folder.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%w: %s is not a regular file", ErrDamaged, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(named, info) {
		err = fmt.Errorf("%w: %s was replaced while it was opened", ErrDamaged, path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// readRegular reads a regular file of at most limit bytes.
func readRegular(path string, limit int64) ([]byte, error) {
	f, info, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Size() > limit {
		return nil, fmt.Errorf("%w: %s is longer than %d bytes", ErrDamaged, path, limit)
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// copier copies files and notes their sizes and sums.
type copier struct {
	to      target
	files   []File
	shared  int64  // bytes of linked files
	damaged string // the first damaged table of the previous backup, which was not linked; "" for none
}

// copyFile copies the file at path. A table that previous has too is linked.
func (c *copier) copyFile(ctx context.Context, path, name string, previous *Backup) error {
	f, info, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if strings.HasSuffix(name, tableSuffix) && previous.has(name, info.Size()) {
		linked, err := c.linkFile(ctx, f, name, info.Size(), previous)
		if linked || err != nil {
			return err
		}
	}
	return c.putFile(ctx, name, info.Size(), f)
}

// linkFile links a table to the one of the previous backup if both have the same content. It reads both, because the
// manifest only shows what the previous backup contained when it was made.
func (c *copier) linkFile(ctx context.Context, f *os.File, name string, size int64, previous *Backup) (bool, error) {
	sum, err := sumContent(ctx, f)
	if err != nil {
		return false, err
	}
	made := File{Name: name, Size: size, SHA256: sum}
	linked := false
	if previous.file(name) == made && c.isSound(ctx, previous, made) {
		if linked, err = c.to.linkFile(name, previous.path(name)); err != nil {
			return false, err
		}
	}
	if linked {
		c.files = append(c.files, made)
		c.shared += size
		return true, nil
	}
	_, err = f.Seek(0, io.SeekStart)
	return false, err
}

// isSound reports whether a file of a backup is as its manifest describes it. It notes the first file that is not.
func (c *copier) isSound(ctx context.Context, b *Backup, want File) bool {
	f, _, err := openRegular(b.path(want.Name))
	if err == nil {
		var sum string
		sum, err = sumContent(ctx, f)
		_ = f.Close() // nothing was written
		if err == nil && sum == want.SHA256 {
			return true
		}
	}
	if c.damaged == "" && ctx.Err() == nil {
		c.damaged = want.Name
	}
	return false
}

func sumContent(ctx context.Context, from io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, reader{ctx, from}); err != nil {
		return "", err
	}
	return sumText(sum), nil
}

// putFile copies a content of that size.
func (c *copier) putFile(ctx context.Context, name string, size int64, content io.Reader) error {
	sum := sha256.New()
	if err := c.to.putFile(name, size, io.TeeReader(reader{ctx, content}, sum)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.files = append(c.files, File{Name: name, Size: size, SHA256: sumText(sum)})
	return nil
}

func sumText(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// reader ends with an error when ctx does.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// folder is a target: a folder on this machine.
type folder struct{ dir string }

// newFolder makes the folder and the one of the store in it.
func newFolder(dir string) (folder, error) {
	return folder{dir}, errors.Join(os.MkdirAll(filepath.Join(dir, storeFolder), durable.DirMode))
}

func (f folder) putFile(name string, size int64, content io.Reader) error {
	to, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, durable.FileMode)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, content)
	if err == nil && n != size {
		err = fmt.Errorf("it has %d bytes, and should have %d", n, size)
	}
	return errors.Join(err, to.Sync(), to.Close())
}

func (f folder) linkFile(name, path string) (bool, error) {
	return os.Link(path, filepath.Join(f.dir, name)) == nil, nil // a file system without links takes a copy
}

// syncNames makes the names of all files durable.
func (f folder) syncNames() error {
	return errors.Join(durable.SyncDir(filepath.Join(f.dir, storeFolder)), durable.SyncDir(f.dir))
}

// copySnapshot copies the files of a snapshot.
func (c *copier) copySnapshot(ctx context.Context, dir string, previous *Backup) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || e.Name() == lockName {
			continue
		}
		if err := c.copyFile(ctx, filepath.Join(dir, e.Name()), storeFolder+"/"+e.Name(), previous); err != nil {
			return err
		}
	}
	return nil
}

// Source is a snapshot to copy.
type Source struct {
	Dir     string // its folder
	Heads   Heads  // its ledgers
	Version string // of the program
	Clock   func() time.Time
}

// write copies the snapshot, its heads and, last, the manifest.
func (s Source) write(ctx context.Context, to target, previous *Backup, heads *os.File) (Made, error) {
	c := copier{to: to}
	if err := c.copySnapshot(ctx, s.Dir, previous); err != nil {
		return Made{}, fmt.Errorf("copy the store: %w", err)
	}
	counted, err := s.Heads.write(ctx, heads)
	if err != nil {
		return Made{}, fmt.Errorf("read the heads: %w", err)
	}
	size, err := heads.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = heads.Seek(0, io.SeekStart)
	}
	if err == nil {
		err = c.putFile(ctx, headsName, size, heads)
	}
	if err != nil {
		return Made{}, err
	}
	slices.SortFunc(c.files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	m := Manifest{Format: manifestFormat, MadeAt: s.Clock().UTC().Truncate(time.Second), Version: s.Version,
		Ledgers: counted.Ledgers, Events: counted.Events, Faults: counted.Faults, Files: c.files}
	if err := m.authenticate(s.Heads.Keyring); err != nil {
		return Made{}, err
	}
	if err := m.write(to); err != nil {
		return Made{}, err
	}
	made := Made{Manifest: m, Shared: c.shared}
	if c.damaged != "" {
		made.Damaged = &Damage{Path: previous.dir, Err: fmt.Errorf("check backup %s: %w: %s is not the file of the manifest",
			previous.dir, ErrDamaged, c.damaged)}
	}
	return made, nil
}

// Made is a backup that was made.
type Made struct {
	Path string
	Manifest
	Shared  int64   // bytes of tables that an earlier backup has too
	Damaged *Damage // found in earlier backups whose files were read; nil for none
}

// Damage describes earlier backups that are damaged.
type Damage struct {
	Path string // of the backup that was found last
	Err  error  // wraps ErrDamaged, and names each backup and file
}
