package exchange

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"

	"github.com/agentledger/agentledger/internal/cluster"
)

// The encoding of News is the sending node (16 bytes), 1 if it is leaving or else 0 (1 byte), and two epochs (8 bytes
// each, big-endian). For each lease, its shard (2 bytes), epoch (8 bytes) and owner (16 bytes) follow. A call without a
// body means that there are changes, but not which.
const (
	nodeBytes  = len(cluster.NodeID{})
	epochBytes = 8
	headBytes  = nodeBytes + 1 + 2*epochBytes
	leaseBytes = 2 + epochBytes + nodeBytes
	newsBytes  = headBytes + cluster.Shards*leaseBytes
)

func encodeNews(n cluster.News) []byte {
	if n.Epoch == 0 {
		return nil
	}
	leaving := byte(0)
	if n.Leaving {
		leaving = 1
	}
	b := append(make([]byte, 0, headBytes+len(n.Leases)*leaseBytes), n.From[:]...)
	b = append(b, leaving)
	b = binary.BigEndian.AppendUint64(b, uint64(n.Since))
	b = binary.BigEndian.AppendUint64(b, uint64(n.Epoch))
	for _, l := range n.Leases {
		b = binary.BigEndian.AppendUint16(b, uint16(l.Shard))
		b = binary.BigEndian.AppendUint64(b, uint64(l.Epoch))
		b = append(b, l.Owner[:]...)
	}
	return b
}

var errNews = errors.New("malformed news of leases")

func parseNews(b []byte) (n cluster.News, err error) {
	if len(b) == 0 {
		return n, nil
	}
	if len(b) < headBytes || (len(b)-headBytes)%leaseBytes != 0 || b[nodeBytes] > 1 {
		return n, errNews
	}
	n.Leaving = b[copy(n.From[:], b)] == 1
	n.Since = cluster.Epoch(binary.BigEndian.Uint64(b[nodeBytes+1:]))
	n.Epoch = cluster.Epoch(binary.BigEndian.Uint64(b[nodeBytes+1+epochBytes:]))
	for b = b[headBytes:]; len(b) > 0; b = b[leaseBytes:] {
		l := cluster.Lease{Shard: cluster.Shard(binary.BigEndian.Uint16(b)),
			Epoch: cluster.Epoch(binary.BigEndian.Uint64(b[2:]))}
		copy(l.Owner[:], b[2+epochBytes:leaseBytes])
		if l.Epoch <= n.Since || l.Epoch > n.Epoch {
			return cluster.News{}, errNews
		}
		n.Leases = append(n.Leases, l)
	}
	return n, nil
}

// takeNews passes the news of another node to this node.
func (x *Exchange) takeNews(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(newsBytes)))
	var n cluster.News
	if err == nil {
		n, err = parseNews(body)
	}
	if err != nil {
		x.Logger.WarnContext(r.Context(), "cluster: malformed news from another node", "error", err)
		n = cluster.News{} // there are changes, but they are unknown
	}
	x.Members.Hear(n)
	w.WriteHeader(http.StatusNoContent)
}
