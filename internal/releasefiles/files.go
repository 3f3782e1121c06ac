package releasefiles

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/agentledger/agentledger/internal/syncs"
)

// Sum returns the SHA-256 of a regular file in the directory, in the form that a list has. It stops when ctx ends.
func Sum(ctx context.Context, dir *os.Root, name string) (string, error) {
	f, err := openRegular(dir, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, syncs.MeteredReader(ctx, &contextReader{ctx, f})); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Check compares a file in the directory with its line of the list. It returns ErrWrong if the file is missing or
// differs; any other error means that the file could not be read.
func (f File) Check(ctx context.Context, dir *os.Root) error {
	sum, err := Sum(ctx, dir, f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("missing: %w", ErrWrong)
	case err != nil:
		return fmt.Errorf("check release file: %w", err)
	case sum != f.SHA256:
		return fmt.Errorf("its SHA-256 is %s: %w", sum, ErrWrong)
	}
	return nil
}

// Unlisted returns the names in the directory that are not on the list, in sorted order.
func (l List) Unlisted(dir *os.Root) (names []string, err error) {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("read release directory: %w", err)
	}
	for _, e := range entries {
		if _, listed := l.Find(e.Name()); !listed && e.Name() != ListName && e.Name() != NoteName {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// openRegular opens a regular file. It returns ErrWrong for any other file without opening it, because opening a pipe
// would wait for its writer.
func openRegular(dir *os.Root, name string) (*os.File, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: %w", name, ErrWrong)
	}
	return dir.Open(name)
}

// contextReader is a reader that stops when its context ends.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (r *contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}
