package tlog

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/mod/sumdb/note"
)

const (
	// MaxNote is the maximum size of a note in bytes. It leaves capacity for 16 of the largest
	// signatures that C2SP signed-note expects.
	MaxNote = 128 << 10

	// MaxSignatures is the maximum number of signature lines of a note.
	MaxSignatures = 100
)

// Note is a C2SP signed note: a text and signatures. The signatures are unverified until Verify is
// called.
type Note struct {
	Text       string // ends in LF
	Signatures []Signature
}

// Signature is a signature line of a note. Its key may be unknown.
type Signature struct {
	Name    string
	KeyHash KeyHash
	Value   []byte // the signature; 64 bytes for the Ed25519 keys of this package
}

const linePrefix = "— " // begins a signature line

// ParseNote parses a signed note: UTF-8 of at most MaxNote bytes, without control characters other
// than LF. It consists of a text, an empty line, and 1 to MaxSignatures signature lines. Two lines
// of one key (name and key hash) are rejected.
func ParseNote(b []byte) (Note, error) {
	if len(b) > MaxNote {
		return Note{}, fmt.Errorf("parse note: size: %w", ErrMalformed)
	}
	n, err := parseUnverifiedNote(b)
	if err != nil {
		return Note{}, fmt.Errorf("parse note: %w", err)
	}
	// The library silently drops a repeated line.
	if bytes.Count(b[len(n.Text)+1:], []byte("\n")) != len(n.Signatures) {
		return Note{}, fmt.Errorf("parse note: a line twice: %w", ErrMalformed)
	}
	for i, s := range n.Signatures {
		if n.findSignature(s.Name, s.KeyHash) != &n.Signatures[i] {
			return Note{}, fmt.Errorf("parse note: a second line of a key: %w", ErrMalformed)
		}
	}
	return n, nil
}

// parseUnverifiedNote parses a note with the library. Without known keys, the library returns all
// lines as unverified.
func parseUnverifiedNote(b []byte) (Note, error) {
	var unverified *note.UnverifiedNoteError
	if _, err := note.Open(b, nil); !errors.As(err, &unverified) {
		return Note{}, fmt.Errorf("text, characters or signature lines: %w", ErrMalformed)
	}
	lines := unverified.Note.UnverifiedSigs
	n := Note{Text: unverified.Note.Text, Signatures: make([]Signature, len(lines))}
	for i, line := range lines {
		value, ok := decodeCanonicalBase64(line.Base64)
		if !ok || !isValidKeyName(line.Name) {
			return Note{}, fmt.Errorf("name or base64 of signature line %d: %w", i+1, ErrMalformed)
		}
		n.Signatures[i] = Signature{Name: line.Name, KeyHash: KeyHash(line.Hash), Value: value[keyHashSize:]}
	}
	return n, nil
}

// isValidKeyName reports whether name can be the name of a key: not empty, and without spaces, plus
// signs and control characters.
func isValidKeyName(name string) bool {
	return name != "" && utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '+' || unicode.IsSpace(r) || unicode.IsControl(r)
	})
}

// findSignature returns the signature by a key, or nil.
func (n Note) findSignature(name string, hash KeyHash) *Signature {
	i := slices.IndexFunc(n.Signatures, func(s Signature) bool { return s.Name == name && s.KeyHash == hash })
	if i < 0 {
		return nil
	}
	return &n.Signatures[i]
}

// Verify checks that the note has a valid signature by the key. Signatures by other keys are
// ignored. The error wraps ErrSignature.
func (n Note) Verify(key VerifierKey) error {
	sig := n.findSignature(key.name, key.hash)
	if sig == nil {
		return fmt.Errorf("verify note: no line of the key: %w", ErrSignature)
	}
	if !key.public.Verify([]byte(n.Text), sig.Value) {
		return fmt.Errorf("verify note: wrong signature: %w", ErrSignature)
	}
	return nil
}

// SignNote returns a note of text with the key's signature. The text must be UTF-8 that ends in LF,
// without an empty line at its end and without control characters other than LF. SignNote rejects
// any text that ParseNote would reject. Ed25519 is deterministic, so equal texts give equal notes.
func (k SignerKey) SignNote(text string) (Note, error) {
	n, err := ParseNote(Note{Text: text, Signatures: []Signature{k.signatureOver(text)}}.Bytes())
	if err != nil {
		return Note{}, fmt.Errorf("sign note: %w", err)
	}
	if n.Text != text {
		return Note{}, fmt.Errorf("sign note: text: %w", ErrMalformed)
	}
	return n, nil
}

// Add returns the note with signatures appended to its lines. It rejects lines that ParseNote would
// reject, for example a second line of a key.
func (n Note) Add(signatures ...Signature) (Note, error) {
	all := slices.Concat(n.Signatures, signatures)
	more, err := ParseNote(Note{Text: n.Text, Signatures: all}.Bytes())
	if err != nil {
		return Note{}, fmt.Errorf("add signatures: %w", err)
	}
	if len(more.Signatures) != len(all) || more.Text != n.Text {
		return Note{}, fmt.Errorf("add signatures: line end in a name: %w", ErrMalformed)
	}
	return more, nil
}

// Bytes returns the note in the form in which it is sent and stored.
func (n Note) Bytes() []byte {
	b := append([]byte(n.Text), '\n')
	for _, sig := range n.Signatures {
		b = append(b, linePrefix+sig.Name+" "...)
		hashed := binary.BigEndian.AppendUint32(nil, uint32(sig.KeyHash))
		b = base64.StdEncoding.AppendEncode(b, append(hashed, sig.Value...))
		b = append(b, '\n')
	}
	return b
}
