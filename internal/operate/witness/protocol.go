package witness

import (
	"encoding/base64"
	"mime"
	"strconv"
	"strings"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/tlog"
)

// mediaSize is the content type of a 409 that contains a size.
const mediaSize = "text/x.tlog.size"

// MaxAnswer is the maximum size of a witness's response in bytes: enough for a few lines of the largest signatures.
const MaxAnswer = 32 << 10

// addCheckpointBody returns the body of add-checkpoint: the old size, the consistency
// proof from it, and the checkpoint. A proof has at most 63 hashes, because tree sizes
// are below 2^63.
func addCheckpointBody(old id.Index, proof []id.Hash, checkpoint []byte) []byte {
	b := make([]byte, 0, 32+45*len(proof)+len(checkpoint))
	b = append(strconv.AppendUint(append(b, "old "...), uint64(old), 10), '\n')
	for _, h := range proof {
		b = append(base64.StdEncoding.AppendEncode(b, h[:]), '\n')
	}
	return append(append(b, '\n'), checkpoint...)
}

// conflictSize parses the size in a 409: decimal digits without leading zeros, followed by a line end. It returns
// false if there is none.
func conflictSize(a egress.Answer) (id.Index, bool) {
	media, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || media != mediaSize {
		return 0, false
	}
	text, ended := strings.CutSuffix(string(a.Body), "\n")
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || !ended || id.Index(n) > tlog.MaxSize || strconv.FormatUint(n, 10) != text {
		return 0, false
	}
	return id.Index(n), true
}
