package anchor

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// parseCheckpoint parses origin, size and root of a checkpoint's note. It does not verify signatures: callers of Put
// have done that, and the checksum of the journal detects changes since.
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
	var decoded [33]byte // the maximum that 44 characters decode to
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

// parseSize parses a decimal tree size.
func parseSize(digits []byte) (size id.Index, ok bool) {
	for _, d := range digits {
		if d < '0' || d > '9' || size > tlog.MaxSize/10 {
			return 0, false
		}
		size = size*10 + id.Index(d-'0')
	}
	return size, len(digits) > 0 && size <= tlog.MaxSize
}
