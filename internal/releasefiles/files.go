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
)

// Sum returns the SHA-256 of a regular file of the folder as a list has it. It ends early when ctx ends.
func Sum(ctx context.Context, dir *os.Root, name string) (string, error) {
	f, err := openRegular(dir, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &contextReader{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Check reads a file of the folder and compares it. A file that is missing or differs is ErrWrong; any other error says
// that the file can't be read.
func (f File) Check(ctx context.Context, dir *os.Root) error {
	sum, err := Sum(ctx, dir, f.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("missing: %w", ErrWrong)
	case err != nil:
		return fmt.Errorf("check file of release: %w", err)
	case sum != f.SHA256:
		return fmt.Errorf("its SHA-256 is %s: %w", sum, ErrWrong)
	}
	return nil
}

// Unlisted returns the names in the folder that are not on the list, in their order.
func (l List) Unlisted(dir *os.Root) (names []string, err error) {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("read folder of release: %w", err)
	}
	for _, e := range entries {
		if _, listed := l.Find(e.Name()); !listed && e.Name() != ListName && e.Name() != NoteName {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// openRegular opens a regular file. Others are ErrWrong and stay closed, because opening a pipe waits for its writer.
func openRegular(dir *os.Root, name string) (*os.File, error) {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: %w", name, ErrWrong)
	}
	return dir.Open(name)
}

// contextReader is a reader that ends with its context.
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
