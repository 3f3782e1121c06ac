package tlog

import (
	"fmt"
	"strings"

	"github.com/transparency-dev/formats/proof"

	"github.com/agentledger/agentledger/id"
)

// MaxProof is the size in bytes of the largest proof text.
const MaxProof = 2 * MaxNote

// Proof is a C2SP tlog-proof: all that an offline reader needs to find an entry
// in a log, but the entry and the log's key.
type Proof struct {
	Extra      []byte // not covered by anything; no line when empty
	Index      id.Index
	Hashes     []id.Hash // as Inclusion makes them, at the checkpoint's size
	Checkpoint []byte    // a signed note
}

const (
	proofHeader = "c2sp.org/tlog-proof@v1\n"
	extraPrefix = "extra "
	indexPrefix = "index "

	maxHashes = 63 // of a proof in a tree of MaxSize leaves
)

// Text returns the proof as it is sent and stored (.tlog-proof).
func (p Proof) Text() []byte {
	written := proof.TLogProof{Index: uint64(p.Index), Checkpoint: p.Checkpoint}
	if len(p.Extra) > 0 {
		written.ExtraData = p.Extra
	}
	for _, h := range p.Hashes {
		written.Hashes = append(written.Hashes, h)
	}
	return written.Marshal()
}

// ParseProof reads exactly what Text writes: at most MaxProof bytes whose last
// part is a checkpoint that ReadCheckpoint reads, with the index below its size.
// Whether the proof holds only Check can tell.
func ParseProof(text []byte) (Proof, error) {
	if len(text) > MaxProof {
		return Proof{}, fmt.Errorf("parse proof: size: %w", ErrMalformed)
	}
	rest, ok := strings.CutPrefix(string(text), proofHeader)
	if !ok {
		return Proof{}, fmt.Errorf("parse proof: header: %w", ErrMalformed)
	}
	var p Proof
	if p.Extra, rest, ok = cutExtra(rest); !ok {
		return Proof{}, fmt.Errorf("parse proof: extra line: %w", ErrMalformed)
	}
	if p.Index, rest, ok = cutIndex(rest); !ok {
		return Proof{}, fmt.Errorf("parse proof: index line: %w", ErrMalformed)
	}
	if p.Hashes, rest, ok = cutHashes(rest); !ok {
		return Proof{}, fmt.Errorf("parse proof: hash lines: %w", ErrMalformed)
	}
	p.Checkpoint = []byte(rest)
	c, err := ReadCheckpoint(p.Checkpoint)
	if err != nil {
		return Proof{}, fmt.Errorf("parse proof: %w", err)
	}
	if p.Index >= c.Size {
		return Proof{}, fmt.Errorf("parse proof: index not below the tree size: %w", ErrMalformed)
	}
	return p, nil
}

// Check checks that the checkpoint is signed by key and the proof leads from
// leaf, the entry's leaf hash, to its root. It returns the checkpoint.
func (p Proof) Check(leaf id.Hash, key VerifierKey) (Checkpoint, error) {
	c, err := OpenCheckpoint(p.Checkpoint, key)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("check proof: %w", err)
	}
	if err := CheckInclusion(p.Index, c.Size, leaf, p.Hashes, c.Root); err != nil {
		return Checkpoint{}, fmt.Errorf("check proof: %w", err)
	}
	return c, nil
}

// cutExtra takes the line with extra data off s, if there is one.
func cutExtra(s string) (extra []byte, rest string, ok bool) {
	encoded, ok := strings.CutPrefix(s, extraPrefix)
	if !ok {
		return nil, s, true
	}
	encoded, rest, _ = strings.Cut(encoded, "\n")
	extra, ok = decodeBase64(encoded)
	return extra, rest, ok && len(extra) > 0
}

func cutIndex(s string) (index id.Index, rest string, ok bool) {
	line, rest, _ := strings.Cut(s, "\n")
	digits, hasPrefix := strings.CutPrefix(line, indexPrefix)
	n, ok := parseDecimal(digits, uint64(MaxSize))
	return id.Index(n), rest, ok && hasPrefix
}

// cutHashes takes the hash lines and the empty line behind them off s.
func cutHashes(s string) (hashes []id.Hash, rest string, ok bool) {
	for {
		line, rest, isWhole := strings.Cut(s, "\n")
		if line == "" {
			return hashes, rest, isWhole
		}
		h, ok := decodeHash(line)
		if !ok || len(hashes) == maxHashes {
			return nil, "", false
		}
		hashes, s = append(hashes, h), rest
	}
}
