package anchor

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// parseCheckpoint reads origin, size and root of a checkpoint's note. It does not check
// signatures: the caller of Put has, and the checksum of the journal says that a note that
// is read back is still the same.
func parseCheckpoint(note []byte) (origin []byte, h head, err error) {
	origin, rest, _ := bytes.Cut(note, []byte("\n"))
	size, rest, _ := bytes.Cut(rest, []byte("\n"))
	root, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(origin) == 0 || len(rest) == 0 || rest[0] != '\n' {
		return nil, h, fmt.Errorf("read anchor: not three lines: %w", tlog.ErrMalformed)
	}
	if h.size, ok = parseSize(size); !ok {
		return nil, h, fmt.Errorf("read anchor: size: %w", tlog.ErrMalformed)
	}
	var decoded [33]byte // room for all that 44 characters may hold
	if len(root) != base64.StdEncoding.EncodedLen(len(h.root)) {
		return nil, h, fmt.Errorf("read anchor: root: %w", tlog.ErrMalformed)
	}
	if n, err := base64.StdEncoding.Decode(decoded[:], root); err != nil || n != len(h.root) {
		return nil, h, fmt.Errorf("read anchor: root: %w", tlog.ErrMalformed)
	}
	copy(h.root[:], decoded[:])
	return origin, h, nil
}

func parseOriginHead(note []byte) (originHead, error) {
	origin, shown, err := parseCheckpoint(note)
	return originHead{origin: hashOriginText(origin), head: shown}, err
}

// parseSize reads the size of a tree in decimal.
func parseSize(digits []byte) (size id.Index, ok bool) {
	for _, d := range digits {
		if d < '0' || d > '9' || size > tlog.MaxSize/10 {
			return 0, false
		}
		size = size*10 + id.Index(d-'0')
	}
	return size, len(digits) > 0 && size <= tlog.MaxSize
}
