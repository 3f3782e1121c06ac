package witnesstest

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// Request is the body of add-checkpoint.
type Request struct {
	Old        id.Index
	Proof      []id.Hash // at most 63
	Checkpoint tlog.Checkpoint
	Note       []byte // the checkpoint as it was sent
}

var errRequest = errors.New("malformed request")

// ParseRequest parses a body strictly: the line with the old size, the lines of the proof, an empty line, and a
// checkpoint that is not smaller than the old size.
func ParseRequest(body []byte) (Request, error) {
	head, note, found := strings.Cut(string(body), "\n\n")
	lines := strings.Split(head, "\n")
	text, ok := strings.CutPrefix(lines[0], "old ")
	old, err := strconv.ParseUint(text, 10, 63)
	if !found || !ok || err != nil || strconv.FormatUint(old, 10) != text {
		return Request{}, fmt.Errorf("old size: %w", errRequest)
	}
	r := Request{Old: id.Index(old), Note: []byte(note)}
	if len(lines) > 64 {
		return Request{}, fmt.Errorf("number of hashes: %w", errRequest)
	}
	for _, line := range lines[1:] {
		h, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(h) != len(id.Hash{}) || base64.StdEncoding.EncodeToString(h) != line {
			return Request{}, fmt.Errorf("hash: %w", errRequest)
		}
		r.Proof = append(r.Proof, id.Hash(h))
	}
	if r.Checkpoint, err = tlog.ReadCheckpoint(r.Note); err != nil {
		return Request{}, err
	}
	if r.Old > r.Checkpoint.Size || r.Old == 0 && len(r.Proof) > 0 {
		return Request{}, fmt.Errorf("old size and checkpoint: %w", errRequest)
	}
	return r, nil
}
