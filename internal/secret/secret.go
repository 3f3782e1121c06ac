// Package secret reads secrets from files and from the environment, in the forms that editors, password managers and
// Kubernetes write. It also reads settings files and protects the environment of the process.
//
// Invariants:
//
//   - Exactly one trailing line end, LF or CRLF, is removed. Everything else belongs to the secret.
//   - A file that other users can read, or that its group can write, is rejected, except on Windows. Its group may read it
//     only if the process is in that group.
//   - A settings file that every user can change is rejected, except on Windows.
//   - No error contains a secret.
//   - A descriptor that is named as /dev/fd/N is closed after it was read.
package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// maxFile bounds a file of secrets, in bytes. The longest one holds the credentials of an object store, whose session
// tokens have up to 4 KiB at some providers.
const maxFile = 16 << 10

// errLineEnd is the error for a secret that still contains a line end after the trailing one was removed.
var errLineEnd = errors.New("contains a line end: a secret is one line, with at most one line end after it")

// TrimLineEnd returns text without one trailing LF or CRLF.
func TrimLineEnd(text string) string {
	if line, ok := strings.CutSuffix(text, "\n"); ok {
		return strings.TrimSuffix(line, "\r")
	}
	return text
}

// Getenv returns the value of an environment variable without its trailing line end, or "" if it is not set.
func Getenv(name string) string { return TrimLineEnd(os.Getenv(name)) }

// ReadLine reads a file that contains one secret and nothing else.
func ReadLine(path string) (string, error) {
	text, err := ReadFile(path)
	if err != nil {
		return "", err
	}
	line := TrimLineEnd(text)
	if err := CheckLine(line); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return line, nil
}

// CheckLine returns an error if a secret without its trailing line end contains another one.
func CheckLine(line string) error {
	if strings.ContainsAny(line, "\r\n") {
		return errLineEnd
	}
	return nil
}

// ReadFile returns the content of a small private file.
func ReadFile(path string) (string, error) {
	f, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if err := CheckAccess(info); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	text, err := readAtMost(f, path, maxFile)
	return string(text), err
}

// readAtMost returns all of r. It returns an error if r is longer than limit bytes.
func readAtMost(r io.Reader, path string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("larger than %d bytes", limit)}
	}
	return text, err
}

// Mode bits that give access to users other than the owner.
const (
	groupRead  fs.FileMode = 0o040
	notPrivate fs.FileMode = 0o037 // refused whatever the group is
)

// noGroup is the group of a file whose system does not report it. No process is in it.
const noGroup = -1

// CheckAccess returns an error if a file is accessible to other users. Read access for one of the process's own groups
// is allowed: Kubernetes mounts secrets with mode 0440 and the group of the pod (fsGroup). On Windows it returns nil,
// because there the mode of a file is derived only from its read-only attribute.
func CheckAccess(info fs.FileInfo) error { return checkAccess(info) }

// checkMode returns an error if a file with this mode and group is accessible to users outside of the given groups.
func checkMode(mode fs.FileMode, group int, own []int) error {
	switch {
	case mode&notPrivate != 0:
		return fmt.Errorf("mode is %04o, so other users have access: set it to 0600, or to 0640 or 0440 for a group of this process", mode)
	case mode&groupRead != 0 && !slices.Contains(own, group):
		return fmt.Errorf("mode is %04o, and the file's group is not a group of this process: set it to 0600", mode)
	}
	return nil
}
