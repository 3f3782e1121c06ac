// Package backup makes backups of an embedded store while it serves, and restores them. It hides how the files of a
// snapshot are copied, shared and verified.
//
// A backup consists of the files of a snapshot (db/…), the signed head of each ledger (heads.jsonl) and a manifest
// with the SHA-256 of each file. It is a directory or one tar file.
//
// Invariants:
//
//   - A backup gets its name only when it is complete and durable. A crash leaves a directory whose name ends with
//     ".new", which the next backup into the same directory removes.
//   - Only files of backups are removed: a directory with any other file is kept, whatever its name is.
//   - A backup never shares a file with a store. Only backups share tables with each other, as hard links.
//   - A table is linked only if it was read and has the same content as the store's table. Damage in one backup never
//     spreads to the next one.
//   - A backup is removed only if a newer one was verified completely.
//   - The ledgers of a backup are the ledgers in its heads: each head was signed from the copied files.
//   - A manifest has an authenticator under a key derived from the master key. Whoever transports or stores a backup
//     cannot change anything in it undetected.
//   - A restored store is moved into place only after every file has the SHA-256 of the manifest.
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
	"github.com/agentledger/agentledger/internal/syncs"
)

const (
	storeFolder   = "db"
	headsName     = "heads.jsonl"
	manifestName  = "manifest.json"
	tableSuffix   = ".sst" // of the store's tables, which never change
	lockName      = "LOCK" // the engine's lock file, which contains no data
	archiveSuffix = ".tar"
)

// IsArchive reports whether a backup at path is one tar file.
func IsArchive(path string) bool { return strings.HasSuffix(path, archiveSuffix) }

// target is where the files of a backup, or of a restored store, are written.
type target interface {
	// putFile writes a file with size bytes of content.
	putFile(name string, size int64, content io.Reader) error
	// linkFile hard-links the file at path under another name. It reports whether that was possible.
	linkFile(name, path string) (linked bool, err error)
}

// openRegular opens a regular file. Whoever can write to a directory of backups could put something else there: a
// FIFO, which blocks a reader permanently, an endless device, or a link to another directory.
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

// copier copies files and records their sizes and hashes.
type copier struct {
	to      target
	files   []File
	shared  int64  // bytes of linked files
	damaged string // the first damaged table of the previous backup; "" if there is none
}

// copyFile copies the file at path. It links a table that previous also contains.
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

// linkFile links a table to the same table of the previous backup if both have the same content. It reads both,
// because the manifest only shows what the previous backup contained when it was made.
func (c *copier) linkFile(ctx context.Context, f *os.File, name string, size int64, previous *Backup) (bool, error) {
	sum, err := sumContent(ctx, f)
	if err != nil {
		return false, err
	}
	current := File{Name: name, Size: size, SHA256: sum}
	linked := false
	if previous.file(name) == current && c.isSound(ctx, previous, current) {
		if linked, err = c.to.linkFile(name, previous.path(name)); err != nil {
			return false, err
		}
	}
	if linked {
		c.files = append(c.files, current)
		c.shared += size
		return true, nil
	}
	_, err = f.Seek(0, io.SeekStart)
	return false, err
}

// isSound reports whether a file of a backup matches its manifest. It records the first file that does not.
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

// putFile copies size bytes of content.
func (c *copier) putFile(ctx context.Context, name string, size int64, content io.Reader) error {
	sum := sha256.New()
	if err := c.to.putFile(name, size, io.TeeReader(reader{ctx, content}, sum)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.files = append(c.files, File{Name: name, Size: size, SHA256: sumText(sum)})
	return nil
}

func sumText(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// reader returns an error when ctx ends.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.Reader.Read(p)
	syncs.CountWork(r.ctx, int64(n))
	return n, err
}

// folder is a target that writes to a directory.
type folder struct{ dir string }

// newFolder creates the directory and its subdirectory for the store.
func newFolder(dir string) (folder, error) {
	return folder{dir}, os.MkdirAll(filepath.Join(dir, storeFolder), durable.DirMode)
}

func (f folder) putFile(name string, size int64, content io.Reader) error {
	to, err := os.OpenFile(filepath.Join(f.dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, durable.FileMode)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, content)
	if err == nil && n != size {
		err = fmt.Errorf("got %d bytes, want %d", n, size)
	}
	return errors.Join(err, to.Sync(), to.Close())
}

func (f folder) linkFile(name, path string) (bool, error) {
	return os.Link(path, filepath.Join(f.dir, name)) == nil, nil // without hard links, the file is copied
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
		if info, err := e.Info(); err == nil && e.Type().IsRegular() {
			syncs.ExpectWork(ctx, info.Size())
		}
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
	Dir     string // directory of the snapshot
	Heads   Heads  // reads the heads of its ledgers
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
		made.Damaged = &Damage{Path: previous.dir, Err: fmt.Errorf("check backup %s: %w: %s does not match the manifest",
			previous.dir, ErrDamaged, c.damaged)}
	}
	return made, nil
}

// Made is a new backup.
type Made struct {
	Path string
	Manifest
	Shared  int64   // bytes of tables shared with an earlier backup
	Damaged *Damage // found in earlier backups while reading their files; nil if there is none
}

// Damage describes earlier backups that are damaged.
type Damage struct {
	Path string // of the damaged backup that was found last
	Err  error  // wraps ErrDamaged, and names each backup and file
}
