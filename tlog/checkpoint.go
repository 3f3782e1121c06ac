package tlog

import (
	"fmt"

	"github.com/transparency-dev/formats/log"

	"github.com/agentledger/agentledger/id"
)

// Checkpoint is what a log says of its tree: the body of a C2SP tlog-checkpoint.
type Checkpoint struct {
	Origin id.Origin // names the log; not empty, and the name of the log's key
	Size   id.Index  // at most MaxSize
	Root   id.Hash   // EmptyRoot at size 0
}

// Text returns the signed text: origin, size in decimal and root in base64, each
// a line.
func (c Checkpoint) Text() string {
	return string(log.Checkpoint{Origin: string(c.Origin), Size: uint64(c.Size), Hash: c.Root[:]}.Marshal())
}

// Sign returns the signed note of the checkpoint. The same checkpoint gives the
// same bytes. It refuses a checkpoint of another origin than the key's name and
// one that could not be read back: nothing that no log of that name can be in
// is ever signed.
func (k SignerKey) Sign(c Checkpoint) ([]byte, error) {
	if string(c.Origin) != k.verifier.name {
		return nil, fmt.Errorf("sign checkpoint: the key is of another origin: %w", ErrMalformed)
	}
	if !c.isPossible() {
		return nil, fmt.Errorf("sign checkpoint: size or root: %w", ErrMalformed)
	}
	text := c.Text()
	return Note{Text: text, Signatures: []Signature{k.signature(text)}}.Bytes(), nil
}

// OpenCheckpoint reads a checkpoint signed by key, whose name is its origin:
// ParseNote's rules, exactly three lines of text without extension lines, and
// one spelling of size and root. Signatures of other keys don't matter.
func OpenCheckpoint(note []byte, key VerifierKey) (Checkpoint, error) {
	n, err := ParseNote(note)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("open checkpoint: %w", err)
	}
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

// ReadCheckpoint reads a checkpoint without asking who signed it. Its origin
// need not be a key's name.
func ReadCheckpoint(note []byte) (Checkpoint, error) {
	n, err := ParseNote(note)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	c, err := parseCheckpoint(n.Text)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("read checkpoint: %w", err)
	}
	return c, nil
}

// parseCheckpoint reads exactly what Text writes. The library alone also reads
// leading zeros, base64 with bits in its padding, roots of any length and text
// behind the root.
func parseCheckpoint(text string) (Checkpoint, error) {
	var read log.Checkpoint
	if _, err := read.Unmarshal([]byte(text)); err != nil || len(read.Hash) != hashSize {
		return Checkpoint{}, fmt.Errorf("checkpoint text: lines, size or root: %w", ErrMalformed)
	}
	c := Checkpoint{Origin: id.Origin(read.Origin), Size: id.Index(read.Size), Root: id.Hash(read.Hash)}
	if !c.isPossible() {
		return Checkpoint{}, fmt.Errorf("checkpoint text: size or root: %w", ErrMalformed)
	}
	if c.Text() != text {
		return Checkpoint{}, fmt.Errorf("checkpoint text: another spelling: %w", ErrMalformed)
	}
	return c, nil
}

// isPossible reports whether a tree can have that size and root.
func (c Checkpoint) isPossible() bool {
	return c.Size <= MaxSize && (c.Size > 0 || c.Root == EmptyRoot())
}
