package tlog

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
)

// MaxProof is the maximum size of a proof text in bytes.
const MaxProof = 2 * MaxNote

// Proof is a C2SP tlog-proof. With the entry and the log's key, an offline reader can
// check that the entry is in the log.
type Proof struct {
	Extra      []byte // not covered by a signature; no line if empty
	Index      id.Index
	Hashes     []id.Hash // as returned by Inclusion for the checkpoint's size
	Checkpoint []byte    // a signed note
}

const (
	proofHeader = "c2sp.org/tlog-proof@v1\n"
	extraPrefix = "extra "
	indexPrefix = "index "

	maxHashes = 63 // in a proof for a tree of MaxSize leaves
)

// Text returns the proof in the form in which it is sent and stored (.tlog-proof).
func (p Proof) Text() []byte {
	b := []byte(proofHeader)
	if len(p.Extra) > 0 {
		b = base64.StdEncoding.AppendEncode(append(b, extraPrefix...), p.Extra)
		b = append(b, '\n')
	}
	b = strconv.AppendUint(append(b, indexPrefix...), uint64(p.Index), 10)
	b = append(b, '\n')
	for i := range p.Hashes {
		b = append(base64.StdEncoding.AppendEncode(b, p.Hashes[i][:]), '\n')
	}
	return append(append(b, '\n'), p.Checkpoint...)
}

// ParseProof accepts only the spelling that Text writes, of at most MaxProof bytes. The last part
// must be a checkpoint that ReadCheckpoint accepts, with a size above the index. Check verifies the
// proof.
func ParseProof(text []byte) (Proof, error) {
	if len(text) > MaxProof {
		return Proof{}, fmt.Errorf("parse proof: size: %w", ErrMalformed)
	}
	rest, ok := strings.CutPrefix(string(text), proofHeader)
	if !ok {
		return Proof{}, fmt.Errorf("parse proof: header: %w", ErrMalformed)
	}
	var p Proof
	if p.Extra, rest, ok = cutExtraLine(rest); !ok {
		return Proof{}, fmt.Errorf("parse proof: extra line: %w", ErrMalformed)
	}
	if p.Index, rest, ok = cutIndexLine(rest); !ok {
		return Proof{}, fmt.Errorf("parse proof: index line: %w", ErrMalformed)
	}
	if p.Hashes, rest, ok = cutHashLines(rest); !ok {
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

// Check checks that key signed the checkpoint, and that the proof leads from leaf, the
// leaf hash of the entry, to the root. It returns the checkpoint.
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

// cutExtraLine removes the line with extra data from s, if present.
func cutExtraLine(s string) (extra []byte, rest string, ok bool) {
	encoded, ok := strings.CutPrefix(s, extraPrefix)
	if !ok {
		return nil, s, true
	}
	encoded, rest, _ = strings.Cut(encoded, "\n")
	extra, ok = decodeCanonicalBase64(encoded)
	return extra, rest, ok && len(extra) > 0
}

func cutIndexLine(s string) (index id.Index, rest string, ok bool) {
	line, rest, _ := strings.Cut(s, "\n")
	digits, hasPrefix := strings.CutPrefix(line, indexPrefix)
	n, ok := parseDecimal(digits, uint64(MaxSize))
	return id.Index(n), rest, ok && hasPrefix
}

// cutHashLines removes the hash lines and the empty line after them from s.
func cutHashLines(s string) (hashes []id.Hash, rest string, ok bool) {
	for {
		line, rest, isWhole := strings.Cut(s, "\n")
		if line == "" {
			return hashes, rest, isWhole
		}
		h, ok := decodeBase64Hash(line)
		if !ok || len(hashes) == maxHashes {
			return nil, "", false
		}
		hashes, s = append(hashes, h), rest
	}
}
