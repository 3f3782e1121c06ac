// Package releasefiles checks downloaded files against the signed list of a release.
//
// Callers need not know the formats of the list and its signed note, or how files are opened safely.
//
// Invariants:
//
//   - The list names each file once, in sorted order, with its SHA-256. Every name is a plain file name in the list's
//     own directory, so no line leads elsewhere.
//   - The note is a C2SP signed note whose text is the list, byte for byte.
//   - Files are read as streams. Only the list, the note and regular files beside them are read.
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

// Names of the list, its note, and the key that signs the note.
const (
	ListName = "SHA256SUMS"
	NoteName = "SHA256SUMS.note"
	KeyName  = "github.com/agentledger/agentledger/release"
)

var (
	// ErrWrong indicates that the list, its signature or a file differs from what was signed.
	ErrWrong = errors.New("not as it was signed")

	// ErrUnsigned indicates that there is no note, so the author of the list is unknown.
	ErrUnsigned = errors.New("the release is not signed: there is no " + NoteName)

	// ErrOtherKey indicates that only keys other than the trusted one have signed.
	ErrOtherKey = errors.New("the release is signed by another key")
)

// File is one line of a list.
type File struct {
	Name   string
	SHA256 string // 64 lower-case digits
}

// List is the list of a release's files. It can be trusted only after CheckSignature.
type List struct {
	Files []File
	note  *tlog.Note // nil without one
}

var lineForm = regexp.MustCompile(`^([0-9a-f]{64})  ([0-9A-Za-z][0-9A-Za-z._+~-]{0,254})$`)

// ParseFiles parses the text of a list: one or more lines in the format of sha256sum, together at most tlog.MaxNote
// bytes. The names must be plain file names in sorted order. Errors wrap ErrWrong.
func ParseFiles(text string) ([]File, error) {
	if len(text) > tlog.MaxNote || !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("%s is empty, is too long or does not end with a newline: %w", ListName, ErrWrong)
	}
	var files []File
	for line := range strings.Lines(text) {
		parts := lineForm.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if parts == nil || parts[2] == ListName || parts[2] == NoteName {
			return nil, fmt.Errorf("%s: line %d is not a SHA-256 and a plain file name: %w", ListName,
				len(files)+1, ErrWrong)
		}
		if n := len(files); n > 0 && files[n-1].Name >= parts[2] {
			return nil, fmt.Errorf("%s: line %d is out of order: %w", ListName, n+1, ErrWrong)
		}
		files = append(files, File{Name: parts[2], SHA256: parts[1]})
	}
	return files, nil
}

// ReadList reads the list in a directory. If there is a note, its text is the list, and a separate list must be equal.
// The error is fs.ErrNotExist if the directory has neither, and ErrWrong for a malformed list.
func ReadList(dir *os.Root) (List, error) {
	text, listErr := readText(dir, ListName)
	signed, noteErr := readText(dir, NoteName)
	switch {
	case errors.Is(noteErr, fs.ErrNotExist):
		if listErr != nil {
			return List{}, fmt.Errorf("read release list: %w", listErr)
		}
		files, err := ParseFiles(text)
		return List{Files: files}, err
	case noteErr != nil:
		return List{}, fmt.Errorf("read release list: %w", noteErr)
	}
	note, err := tlog.ParseNote([]byte(signed))
	if err != nil {
		return List{}, fmt.Errorf("%s: %w: %w", NoteName, ErrWrong, err)
	}
	switch {
	case errors.Is(listErr, fs.ErrNotExist):
	case listErr != nil:
		return List{}, fmt.Errorf("read release list: %w", listErr)
	case text != note.Text:
		return List{}, fmt.Errorf("%s is not the text of %s: %w", ListName, NoteName, ErrWrong)
	}
	files, err := ParseFiles(note.Text)
	return List{Files: files, note: &note}, err
}

// readText reads a regular file of at most tlog.MaxNote bytes.
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

// CheckSignature checks that the key has signed the list. The error is ErrUnsigned, ErrOtherKey with the names of the
// signers, or ErrWrong if the key's signature does not verify.
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

// Find returns the list's line for a file.
func (l List) Find(name string) (File, bool) {
	for _, f := range l.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}
