package backup

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

// ErrDamaged is wrapped by errors about a backup that does not match its manifest.
var ErrDamaged = errors.New("the backup is damaged")

// ErrUnauthenticated is wrapped by errors about a backup that was not authenticated with a master key of this service.
var ErrUnauthenticated = errors.New("the backup is not authenticated")

const (
	nameLayout = "20060102T150405.000Z" // of the directory of a backup or snapshot, in UTC
	unfinished = ".new"                 // suffix of the name of an incomplete backup

	archivePattern = ".backup-*" + durable.TemporarySuffix // of an incomplete tar file
	headsPattern   = ".heads-*"                            // of a file of heads whose number is not yet known
)

// MakeIn makes a backup in a new directory below dir, which is named by the time. It shares tables with the latest
// backup in dir. If one of them is damaged there, that backup is marked as failed.
func (s Source) MakeIn(ctx context.Context, dir string) (m Made, err error) {
	if err := os.MkdirAll(dir, durable.DirMode); err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	err = withLock(dir, func() error {
		if err := removeUnfinished(dir, s.Heads.Report); err != nil {
			return err
		}
		made, err := list(dir)
		if err != nil {
			return err
		}
		m, err = s.makeBelow(ctx, dir, made)
		if err == nil && m.Damaged != nil {
			err = writeMark(m.Damaged.Path, Failed, s.Clock())
		}
		return err
	})
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	return m, nil
}

// withLock calls change while no other process changes the backups below dir.
func withLock(dir string, change func() error) error {
	lock, err := durable.AcquireTemporaryLock(filepath.Join(dir, "lock"))
	if errors.Is(err, durable.ErrLocked) {
		return fmt.Errorf("another backup into %s is in progress", dir)
	}
	if err != nil {
		return err
	}
	return errors.Join(change(), durable.RemoveLock(lock))
}

// makeBelow makes the backup in a directory below dir. made are the earlier backups there.
func (s Source) makeBelow(ctx context.Context, dir string, made []string) (m Made, err error) {
	path := filepath.Join(dir, s.Clock().UTC().Format(nameLayout))
	if _, err := os.Stat(path); err == nil {
		return m, fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	temp := path + unfinished
	to, err := newFolder(temp)
	if err != nil {
		return m, err
	}
	if m, err = s.fillFolder(ctx, to, latest(dir, made)); err != nil {
		return m, errors.Join(err, os.RemoveAll(temp))
	}
	m.Path = path
	return m, durable.Rename(temp, path)
}

func (s Source) fillFolder(ctx context.Context, to folder, previous *Backup) (m Made, err error) {
	heads, err := durable.NewTemporary(filepath.Join(to.dir, headsName), headsPattern)
	if err != nil {
		return m, err
	}
	m, err = s.write(ctx, to, previous, heads.File)
	return m, errors.Join(err, heads.Discard(), to.syncNames())
}

// latest returns the latest backup that can be opened, or nil if there is none.
func latest(dir string, made []string) *Backup {
	for _, name := range slices.Backward(made) {
		if b, err := Open(filepath.Join(dir, name)); err == nil {
			return b
		}
	}
	return nil
}

// MakeFile makes a backup in one tar file at path, which must not exist.
func (s Source) MakeFile(ctx context.Context, path string) (m Made, err error) {
	if _, err := os.Stat(path); err == nil {
		return m, fmt.Errorf("backup: %s: %w", path, fs.ErrExist)
	}
	if err := removeStale(filepath.Dir(path), s.Clock()); err != nil {
		return m, fmt.Errorf("backup: remove files of an interrupted backup: %w", err)
	}
	t, err := newTemporary(path, archivePattern)
	if err != nil {
		return m, fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("backup: %w", errors.Join(err, t.Discard()))
		}
	}()
	if m, err = s.fillFile(ctx, t); err != nil {
		return m, err
	}
	m.Path = path
	if err := errors.Join(t.Sync(), t.MoveToPath(), t.Close(), t.unlock()); err != nil {
		return m, err
	}
	return m, durable.SyncDir(filepath.Dir(path))
}

func (s Source) fillFile(ctx context.Context, to *temporary) (m Made, err error) {
	heads, err := newTemporary(to.Name(), headsPattern)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, heads.Discard()) }()
	a := archive{tar.NewWriter(to), s.Clock()}
	if m, err = s.write(ctx, a, nil, heads.File); err != nil {
		return m, err
	}
	return m, a.Close()
}

// archive is a target that writes a tar file.
type archive struct {
	*tar.Writer
	at time.Time
}

func (a archive) putFile(name string, size int64, content io.Reader) error {
	header := &tar.Header{Name: name, Size: size, Mode: int64(durable.FileMode), ModTime: a.at, Format: tar.FormatPAX}
	if err := a.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(a.Writer, content) // the next header, or Close, returns an error for a wrong size
	return err
}

func (archive) linkFile(string, string) (bool, error) { return false, nil }
