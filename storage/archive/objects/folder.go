package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/internal/syncs"
)

// Names in the store's folder. They begin with ".", which names of objects must not.
const (
	lockName    = ".lock"
	partialName = ".partial" // folder of files that are being written
)

// lockPoll is the time between two attempts to acquire a lock that another process holds.
const lockPoll = 5 * time.Millisecond

// Folder stores each object in a file. The version of an object is the SHA-256 of its content.
type Folder struct {
	dir      string
	writers  syncs.KeyLocks[struct{}]
	prepared bool // the folder is ready for writes; protected by writers
}

// NewFolder returns a store in a folder. It changes nothing: the first write creates the folder, whose parent must
// exist, and removes partial files left by a crash. So a program that only reads may run as another user.
func NewFolder(dir string) (*Folder, error) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = os.Stat(filepath.Dir(dir))
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", dir)
	}
	if err != nil {
		return nil, unavailable("check the folder", err)
	}
	return &Folder{dir: dir}, nil
}

// makeFolder durably creates one folder. It is no error if the folder exists.
func makeFolder(dir string) error {
	if err := os.Mkdir(dir, durable.DirMode); errors.Is(err, fs.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(dir))
}

// Create implements Store.
func (f *Folder) Create(ctx context.Context, name string, data []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	return f.write(ctx, "create", func() error {
		_, err := os.Lstat(f.path(name))
		if err == nil {
			return ErrExists
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return f.putFile(name, data)
	})
}

// Read implements Store.
func (f *Folder) Read(_ context.Context, name string, limit int64) ([]byte, string, error) {
	if err := checkName(name); err != nil {
		return nil, "", err
	}
	data, err := readFile(f.path(name), limit)
	if err != nil {
		return nil, "", stepError("read", err)
	}
	return data, versionOf(data), nil
}

// Replace implements Store.
func (f *Folder) Replace(ctx context.Context, name string, data []byte, version string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return f.write(ctx, "replace", func() error {
		stored, err := digestFile(f.path(name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && stored != version {
			return ErrChanged
		}
		if err != nil {
			return err
		}
		return f.putFile(name, data)
	})
}

// Delete implements Store.
func (f *Folder) Delete(ctx context.Context, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	return f.write(ctx, "delete", func() error {
		if err := os.Remove(f.path(name)); errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		return durable.SyncDir(filepath.Dir(f.path(name)))
	})
}

// path returns the file of an object, whose name must have been checked.
func (f *Folder) path(name string) string { return filepath.Join(f.dir, filepath.FromSlash(name)) }

// write calls act while no other call or process writes to the folder.
func (f *Folder) write(ctx context.Context, step string, act func() error) error {
	unlock, err := f.writers.Lock(ctx, struct{}{})
	if err != nil {
		return unavailable(step, err)
	}
	defer unlock()
	if err := makeFolder(f.dir); err != nil {
		return unavailable(step, err)
	}
	lock, err := acquireLock(ctx, filepath.Join(f.dir, lockName))
	if err != nil {
		return unavailable(step, err)
	}
	err = f.prepare()
	if err == nil {
		err = act()
	}
	return stepError(step, errors.Join(err, lock.Close()))
}

// prepare creates the folder for partial files and empties it before the first write. The caller must hold the lock, so
// no partial file belongs to a running write.
func (f *Folder) prepare() error {
	if f.prepared {
		return nil
	}
	partial := filepath.Join(f.dir, partialName)
	if err := makeFolder(partial); err != nil {
		return err
	}
	parts, err := os.ReadDir(partial)
	for _, part := range parts {
		err = errors.Join(err, os.Remove(filepath.Join(partial, part.Name())))
	}
	f.prepared = err == nil
	return err
}

// acquireLock waits for the lock between processes.
func acquireLock(ctx context.Context, path string) (io.Closer, error) {
	for {
		lock, err := durable.AcquireLock(path)
		if !errors.Is(err, durable.ErrLocked) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
}

// putFile replaces the object's file. Readers see the old file or the complete new one.
func (f *Folder) putFile(name string, data []byte) error {
	path := f.path(name)
	if err := f.makeParents(filepath.Dir(path)); err != nil {
		return err
	}
	part, err := durable.NewTemporary(filepath.Join(f.dir, partialName, "part"), "*"+durable.TemporarySuffix)
	if err != nil {
		return err
	}
	_, err = part.Write(data)
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil {
		err = durable.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(err, part.Discard())
	}
	return nil
}

// makeParents creates the folders of a name, from the top down.
func (f *Folder) makeParents(dir string) error {
	if _, err := os.Stat(dir); dir == f.dir || err == nil {
		return nil
	}
	if err := f.makeParents(filepath.Dir(dir)); err != nil {
		return err
	}
	return makeFolder(dir)
}

// readFile reads a regular file. It returns ErrTooLarge if the file is longer than limit bytes.
func readFile(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file: %s", info.Mode().Type())
	}
	return readBounded(file, info.Size(), limit)
}

// readBounded reads a stream with a declared size, or -1 if the size is unknown. It returns ErrTooLarge if the stream
// is longer than limit bytes.
func readBounded(r io.Reader, size, limit int64) ([]byte, error) {
	if size > limit {
		return nil, ErrTooLarge
	}
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, ErrTooLarge
	}
	return data, err
}

// digestFile returns the version of a file.
func digestFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	digest := sha256.New()
	_, err = io.Copy(digest, file)
	return hex.EncodeToString(digest.Sum(nil)), err
}

// versionOf returns the version of an object with the given content.
func versionOf(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// stepError adds the step to an error. It keeps this package's errors, and wraps all others in storage.ErrUnavailable.
func stepError(step string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w", step, ErrNotFound)
	case errors.Is(err, ErrExists), errors.Is(err, ErrChanged), errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%s: %w", step, err)
	}
	return unavailable(step, err)
}
