package nodes

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/cluster"
)

// versions counts the nodes of each version.
type versions struct {
	node        *Node
	description *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (v versions) Describe(out chan<- *prometheus.Desc) { out <- v.description }

// Collect implements prometheus.Collector.
func (v versions) Collect(out chan<- prometheus.Metric) {
	counts := map[string]int{}
	for _, n := range v.node.Nodes() {
		counts[n.Version]++
	}
	for version, count := range counts {
		out <- prometheus.MustNewConstMetric(v.description, prometheus.GaugeValue, float64(count), version)
	}
}

// lookForNodes is how often joined and departed nodes are logged.
const lookForNodes = time.Second

// tellVersions logs the version of each other node that joins, and each departure, until ctx ends.
func (n *Node) tellVersions(ctx context.Context) {
	known := map[cluster.NodeID]cluster.Node{}
	tick := time.NewTicker(lookForNodes)
	defer tick.Stop()
	for {
		n.tellChanges(ctx, known)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// tellChanges logs joined and departed nodes, and updates known.
func (n *Node) tellChanges(ctx context.Context, known map[cluster.NodeID]cluster.Node) {
	logger, now := n.options.Logger, map[cluster.NodeID]bool{}
	for _, other := range n.Nodes() {
		now[other.ID] = true
		if _, seen := known[other.ID]; seen || other.ID == n.Self().ID {
			continue
		}
		known[other.ID] = other
		logger.InfoContext(ctx, "cluster: node joined", describe(other)...)
		if _, err := other.Speaks(); err != nil {
			logger.ErrorContext(ctx, "cluster: requests cannot be passed to a node", "error", err)
		}
	}
	for id, other := range known {
		if !now[id] {
			delete(known, id)
			logger.InfoContext(ctx, "cluster: node left", describe(other)...)
		}
	}
}

func describe(n cluster.Node) []any {
	return []any{slog.String("node", n.ID.String()), slog.String("url", n.URL), slog.String("node_version", n.Version)}
}
