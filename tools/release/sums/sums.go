// Package sums writes and checks the list of a release's files, and its signature.
//
// Invariants:
//   - The list has each file of the folder once, in the order of the names, except for itself and its note.
//   - The note is a C2SP signed note whose text is the list, byte for byte.
package sums

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/tlog"
)

// Names of the files, and of the key in the note.
const (
	List    = "SHA256SUMS"
	Note    = "SHA256SUMS.note"
	KeyName = "github.com/agentledger/agentledger/release"
)

// ErrFound says that the signature, or a file, is not the one of the release.
var ErrFound = errors.New("not the release that was signed")

// Compute returns the list of a folder.
func Compute(dir string) (string, error) {
	entries, err := os.ReadDir(dir) // in the order of the names
	if err != nil {
		return "", fmt.Errorf("sum files: %w", err)
	}
	var list strings.Builder
	for _, e := range entries {
		if e.Name() == List || e.Name() == Note {
			continue
		}
		sum, err := sumFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", fmt.Errorf("sum files: %w", err)
		}
		fmt.Fprintf(&list, "%s  %s\n", sum, e.Name())
	}
	return list.String(), nil
}

func sumFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// ReadKey reads a private key as aps keygen --out writes it.
func ReadKey(file string) (tlog.SignerKey, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("read release key: %w", err)
	}
	seed, err := edkey.ParseSeed(strings.TrimSpace(string(text)))
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("read release key: %w", err)
	}
	private, err := edkey.PrivateFromSeed(seed)
	if err != nil {
		return tlog.SignerKey{}, fmt.Errorf("read release key: %w", err)
	}
	return tlog.NewSignerKey(KeyName, private)
}

// Verify checks the note of a folder under a key, and each file that the note lists. A file that is missing, changed or
// not on the list is ErrFound, as is a wrong signature.
func Verify(dir, vkey string) error {
	key, err := tlog.ParseVerifierKey(vkey)
	if err != nil {
		return fmt.Errorf("verify release: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, Note))
	if err != nil {
		return fmt.Errorf("verify release: %w", err)
	}
	note, err := tlog.ParseNote(text)
	if err != nil {
		return fmt.Errorf("%w: parse note: %w", ErrFound, err)
	}
	if err := note.Verify(key); err != nil {
		return fmt.Errorf("%w: %w", ErrFound, err)
	}
	list, err := Compute(dir)
	if err != nil {
		return err
	}
	if list != note.Text {
		return fmt.Errorf("%w: the files differ from the list", ErrFound)
	}
	return nil
}
