package exchange

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"

	"github.com/agentledger/agentledger/internal/cluster"
)

// News of leases are the node they come from in 16 bytes, 1 or 0 for a node that leaves or stays, and two epochs of
// 8 bytes, big-endian. Then come for each lease its shard in 2 bytes, its epoch in 8 and its owner in 16. A call
// without a body has no news but that there are some.
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

var errNews = errors.New("news of leases are malformed")

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

// takeNews tells this node what another one has changed.
func (x *Exchange) takeNews(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(newsBytes)))
	var n cluster.News
	if err == nil {
		n, err = parseNews(body)
	}
	if err != nil {
		x.Logger.WarnContext(r.Context(), "cluster: news of another node are not taken", "error", err)
		n = cluster.News{} // but there are some
	}
	x.Members.Hear(n)
	w.WriteHeader(http.StatusNoContent)
}
