package tlog

import (
	"fmt"
	"strconv"
	"strings"

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
	b := append([]byte(c.Origin), '\n')
	b = strconv.AppendUint(b, uint64(c.Size), 10)
	b = appendHash(append(b, '\n'), c.Root)
	return string(append(b, '\n'))
}

// Sign returns the signed note of the checkpoint. The same checkpoint gives the
// same bytes. It refuses a checkpoint of another origin than the key's name and
// one that could not be read back: nothing that no log of that name can be in
// is ever signed.
func (k SignerKey) Sign(c Checkpoint) ([]byte, error) {
	if string(c.Origin) != k.verifier.name {
		return nil, fmt.Errorf("sign checkpoint: the key is of another origin: %w", ErrMalformed)
	}
	text := c.Text()
	if _, err := parseCheckpoint(text); err != nil {
		return nil, fmt.Errorf("sign checkpoint: %w", err)
	}
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

// parseCheckpoint reads exactly what Text writes.
func parseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.SplitN(text, "\n", 5)
	if len(lines) != 4 || lines[0] == "" || lines[3] != "" {
		return Checkpoint{}, fmt.Errorf("checkpoint text: not three lines: %w", ErrMalformed)
	}
	size, ok := parseDecimal(lines[1], uint64(MaxSize))
	if !ok {
		return Checkpoint{}, fmt.Errorf("checkpoint text: size: %w", ErrMalformed)
	}
	root, ok := decodeHash(lines[2])
	if !ok || size == 0 && root != EmptyRoot() {
		return Checkpoint{}, fmt.Errorf("checkpoint text: root: %w", ErrMalformed)
	}
	return Checkpoint{Origin: id.Origin(lines[0]), Size: id.Index(size), Root: root}, nil
}
