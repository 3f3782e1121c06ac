package tlog

import (
	"fmt"

	"github.com/transparency-dev/formats/log"

	"github.com/agentledger/agentledger/id"
)

// Checkpoint is a log's statement about its tree: the body of a C2SP tlog-checkpoint.
type Checkpoint struct {
	Origin id.Origin // the name of the log and of its key; not empty
	Size   id.Index  // at most MaxSize
	Root   id.Hash   // EmptyRoot at size 0
}

// Text returns the signed text: origin, size in decimal and root in base64, each on its own line.
func (c Checkpoint) Text() string {
	return string(log.Checkpoint{Origin: string(c.Origin), Size: uint64(c.Size), Hash: c.Root[:]}.Marshal())
}

// Sign returns the signed note of the checkpoint. Equal checkpoints give equal bytes. Sign rejects
// an origin other than the key's name and any checkpoint that OpenCheckpoint would reject, so an
// impossible state of a log is never signed.
func (k SignerKey) Sign(c Checkpoint) ([]byte, error) {
	if string(c.Origin) != k.verifier.name {
		return nil, fmt.Errorf("sign checkpoint: the key is of another origin: %w", ErrMalformed)
	}
	if !c.isPossibleTree() {
		return nil, fmt.Errorf("sign checkpoint: size or root: %w", ErrMalformed)
	}
	text := c.Text()
	return Note{Text: text, Signatures: []Signature{k.signatureOver(text)}}.Bytes(), nil
}

// OpenCheckpoint parses a checkpoint that key signed. The key's name MUST be the origin. The note
// follows the rules of ParseNote. Its text has exactly three lines, so there are no extension
// lines, with one spelling of size and root. Signatures by other keys are ignored.
func OpenCheckpoint(note []byte, key VerifierKey) (Checkpoint, error) {
	n, err := ParseNote(note)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("open checkpoint: %w", err)
	}
	return n.OpenCheckpoint(key)
}

// OpenCheckpoint is the function OpenCheckpoint for a note that is already parsed.
func (n Note) OpenCheckpoint(key VerifierKey) (Checkpoint, error) {
	if err := n.Verify(key); err != nil {
		return Checkpoint{}, fmt.Errorf("open checkpoint: %w", err)
	}
	c, err := parseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("open checkpoint: %w", err)
	}
	if string(c.Origin) != key.name {
		return Checkpoint{}, fmt.Errorf("open checkpoint: the key is of another origin: %w", ErrSignature)
	}
	return c, nil
}

// ReadCheckpoint parses a checkpoint without verifying a signature. Its origin need not be the name
// of a key.
func ReadCheckpoint(note []byte) (Checkpoint, error) {
	n, err := ParseNote(note)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	return n.ReadCheckpoint()
}

// ReadCheckpoint is the function ReadCheckpoint for a note that is already parsed.
func (n Note) ReadCheckpoint() (Checkpoint, error) {
	c, err := parseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	return c, nil
}

// parseCheckpoint accepts only the spelling that Text writes. The library alone also accepts
// leading zeros, base64 with nonzero padding bits, roots of any length, and lines after the root.
func parseCheckpoint(text string) (Checkpoint, error) {
	var read log.Checkpoint
	if _, err := read.Unmarshal([]byte(text)); err != nil || len(read.Hash) != hashSize {
		return Checkpoint{}, fmt.Errorf("checkpoint text: lines, size or root: %w", ErrMalformed)
	}
	c := Checkpoint{Origin: id.Origin(read.Origin), Size: id.Index(read.Size), Root: id.Hash(read.Hash)}
	if !c.isPossibleTree() {
		return Checkpoint{}, fmt.Errorf("checkpoint text: size or root: %w", ErrMalformed)
	}
	if c.Text() != text {
		return Checkpoint{}, fmt.Errorf("checkpoint text: another spelling: %w", ErrMalformed)
	}
	return c, nil
}

// isPossibleTree reports whether a tree can have that size and root.
func (c Checkpoint) isPossibleTree() bool {
	return c.Size <= MaxSize && (c.Size > 0 || c.Root == EmptyRoot())
}
