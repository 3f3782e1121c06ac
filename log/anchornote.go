package log

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
)

// readAnchor reads what the anchors keep of a checkpoint's note: the lines of origin,
// size and root. Its signatures were checked by whoever appended it, or it was made
// here; when it is read back the journal's checksum says that it is still that note.
func readAnchor(note []byte) (origin []byte, a anchor, err error) {
	origin, rest, _ := bytes.Cut(note, []byte("\n"))
	size, rest, _ := bytes.Cut(rest, []byte("\n"))
	root, rest, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(origin) == 0 || len(rest) == 0 || rest[0] != '\n' {
		return nil, a, fmt.Errorf("read anchor: not three lines: %w", tlog.ErrMalformed)
	}
	if a.size, ok = readSize(size); !ok {
		return nil, a, fmt.Errorf("read anchor: size: %w", tlog.ErrMalformed)
	}
	var decoded [33]byte // what 44 characters can hold
	if len(root) != base64.StdEncoding.EncodedLen(len(a.root)) {
		return nil, a, fmt.Errorf("read anchor: root: %w", tlog.ErrMalformed)
	}
	if n, err := base64.StdEncoding.Decode(decoded[:], root); err != nil || n != len(a.root) {
		return nil, a, fmt.Errorf("read anchor: root: %w", tlog.ErrMalformed)
	}
	copy(a.root[:], decoded[:])
	return origin, a, nil
}

func readKeyed(note []byte) (keyedAnchor, error) {
	origin, shown, err := readAnchor(note)
	return keyedAnchor{key: keyOfText(origin), anchor: shown}, err
}

// readSize reads the size of a tree in decimal.
func readSize(digits []byte) (size id.Index, ok bool) {
	for _, d := range digits {
		if d < '0' || d > '9' || size > tlog.MaxSize/10 {
			return 0, false
		}
		size = size*10 + id.Index(d-'0')
	}
	return size, len(digits) > 0 && size <= tlog.MaxSize
}
