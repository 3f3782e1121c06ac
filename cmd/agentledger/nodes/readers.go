package nodes

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/replica"
	"github.com/agentledger/agentledger/publicapi"
)

// readerCache bounds, in bytes, the cache of tiles for comparing stored heads with anchors, and the cache of the latest
// events of logs that are found by hash.
const readerCache = 1 << 20

// Readers returns the ledgers for readers of public logs, once for all reads and once for immutable parts of logs that
// other nodes own. The index finds events on behalf of an owner. It is nil for a process that serves alone.
// anchorFirst is log.Options.AnchorFirst.
func (n *Node) Readers(l *log.Ledgers, anchorFirst func() bool) (publicapi.Ledgers, publicapi.Known, *index.Index) {
	if n == nil {
		return l, nil, nil
	}
	o := &n.options
	readers := replica.New(replica.Options{Ledgers: l, Store: o.Engine, Anchors: o.Anchors, Elapsed: o.Elapsed,
		AnchorFirst: anchorFirst, Reader: log.NewReader(log.Options{Store: o.Engine, Keyring: o.Keyring,
			Anchors: o.Anchors, Logger: o.Logger, TileCacheBytes: readerCache, LeafCacheBytes: readerCache})})
	o.Metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "agentledger_node_stand_in_reads_total",
		Help: "Public reads of logs whose owner could not be reached, answered from the database.",
	}, func() float64 { return float64(readers.StoodIn()) }))
	return readers, readers, index.New(index.Options{Ledgers: readers, Store: o.Engine, TailBytes: readerCache})
}
