// Package releasefiles checks files that were downloaded against the signed list of a release.
//
// Invariants:
//   - The list has each file once, in the order of the names, with its SHA-256. A name is that of a file in the
//     list's own folder: no part of a list leads elsewhere.
//   - The note is a C2SP signed note whose text is the list, byte for byte.
//   - Files are read as streams, and nothing is read but the list, the note and regular files beside them.
package releasefiles

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/agentledger/agentledger/tlog"
)

// Names of the list, of its note, and of the key that signs the note.
const (
	ListName = "SHA256SUMS"
	NoteName = "SHA256SUMS.note"
	KeyName  = "github.com/agentledger/agentledger/release"
)

var (
	// ErrWrong says that the list, its signature or a file differs from the signed one.
	ErrWrong = errors.New("not as it was signed")

	// ErrUnsigned says that there is no note, so the author of the files may be the author of the list.
	ErrUnsigned = errors.New("the release is not signed: there is no " + NoteName)

	// ErrOtherKey says that other keys than the one that is trusted have signed.
	ErrOtherKey = errors.New("the release is signed by another key")
)

// File is one line of a list.
type File struct {
	Name   string
	SHA256 string // 64 lower-case digits
}

// List is the list of a release's files. Its signature counts after CheckSignature only.
type List struct {
	Files []File
	note  *tlog.Note // nil without one
}

var lineForm = regexp.MustCompile(`^([0-9a-f]{64})  ([0-9A-Za-z][0-9A-Za-z._+~-]{0,254})$`)

// ParseFiles reads the text of a list: at most tlog.MaxNote bytes of lines as sha256sum writes them, and at least one.
// It refuses names that are no plain file names, and lines in another order than that of the names. The error wraps
// ErrWrong.
func ParseFiles(text string) ([]File, error) {
	if len(text) > tlog.MaxNote || !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("%s: too long, empty, or the last line has no end: %w", ListName, ErrWrong)
	}
	var files []File
	for line := range strings.Lines(text) {
		parts := lineForm.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if parts == nil || parts[2] == ListName || parts[2] == NoteName {
			return nil, fmt.Errorf("%s: line %d has no SHA-256 and plain file name: %w", ListName,
				len(files)+1, ErrWrong)
		}
		if n := len(files); n > 0 && files[n-1].Name >= parts[2] {
			return nil, fmt.Errorf("%s: line %d is not in the order of names: %w", ListName, n+1, ErrWrong)
		}
		files = append(files, File{Name: parts[2], SHA256: parts[1]})
	}
	return files, nil
}

// ReadList reads the list of a folder. The note is the list where both are there, so that they can't differ. A folder
// that has neither is fs.ErrNotExist; a list that breaks the rules is ErrWrong.
func ReadList(dir *os.Root) (List, error) {
	text, listErr := readText(dir, ListName)
	signed, noteErr := readText(dir, NoteName)
	switch {
	case errors.Is(noteErr, fs.ErrNotExist):
		if listErr != nil {
			return List{}, fmt.Errorf("read list of release: %w", listErr)
		}
		files, err := ParseFiles(text)
		return List{Files: files}, err
	case noteErr != nil:
		return List{}, fmt.Errorf("read list of release: %w", noteErr)
	}
	note, err := tlog.ParseNote([]byte(signed))
	if err != nil {
		return List{}, fmt.Errorf("%s: %w: %w", NoteName, ErrWrong, err)
	}
	switch {
	case errors.Is(listErr, fs.ErrNotExist):
	case listErr != nil:
		return List{}, fmt.Errorf("read list of release: %w", listErr)
	case text != note.Text:
		return List{}, fmt.Errorf("%s is not the text of %s: %w", ListName, NoteName, ErrWrong)
	}
	files, err := ParseFiles(note.Text)
	return List{Files: files, note: &note}, err
}

// readText reads a regular file of a folder, of at most tlog.MaxNote bytes.
func readText(dir *os.Root, name string) (string, error) {
	f, err := openRegular(dir, name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, tlog.MaxNote+1))
	if err == nil && len(text) > tlog.MaxNote {
		err = fmt.Errorf("%s: longer than %d bytes: %w", name, tlog.MaxNote, ErrWrong)
	}
	return string(text), err
}

// CheckSignature checks that the key has signed the list. The error is ErrUnsigned, ErrOtherKey with the signers, or
// ErrWrong for a signature that is none of the key that it names.
func (l List) CheckSignature(key tlog.VerifierKey) error {
	if l.note == nil {
		return ErrUnsigned
	}
	var others []string
	for _, s := range l.note.Signatures {
		if s.Name == key.Name() && s.KeyHash == key.Hash() {
			if err := l.note.Verify(key); err != nil {
				return fmt.Errorf("%s: %w: %w", NoteName, ErrWrong, err)
			}
			return nil
		}
		others = append(others, fmt.Sprintf("%s+%s", s.Name, s.KeyHash))
	}
	return fmt.Errorf("%w: %s", ErrOtherKey, strings.Join(others, ", "))
}

// Find returns the line of a file.
func (l List) Find(name string) (File, bool) {
	for _, f := range l.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}
