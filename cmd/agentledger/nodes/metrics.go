package nodes

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/cluster/forward"
)

// registerMetrics registers the metrics of a node.
func (n *Node) registerMetrics(r prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	r.MustRegister(
		gauge("agentledger_nodes", "Nodes that this one sees, itself included.",
			func() float64 { return float64(len(n.Nodes())) }),
		gauge("agentledger_node_shards", "Shards of 1,024 that this node owns now.",
			func() float64 { return float64(n.OwnedShards()) }),
		gauge("agentledger_node_beat_age_seconds", "Time since the begin of the newest beat that succeeded.",
			func() float64 { return n.BeatAge().Seconds() }),
		gauge("agentledger_node_passed_requests", "Requests that are passed to other nodes, or wait for an owner.",
			func() float64 { return float64(n.proxy.InFlight()) }),
		gauge("agentledger_node_anchor_lag_seconds", "Longest time for which another node has been lacking anchors.",
			func() float64 { return n.exchange.Lag().Seconds() }),
		n.countPasses("answered", func(c forward.Counts) uint64 { return c.Answered }),
		n.countPasses("no_owner", func(c forward.Counts) uint64 { return c.NoOwner }),
		n.countPasses("outcome_unknown", func(c forward.Counts) uint64 { return c.OutcomeUnknown }),
		n.countPasses("cut", func(c forward.Counts) uint64 { return c.Cut }),
		versions{n, prometheus.NewDesc("agentledger_nodes_by_version",
			"Nodes that this node sees, including itself, by the version of their programs.", []string{"version"}, nil)},
	)
}

// countPasses returns the counter of the passed requests with one result.
func (n *Node) countPasses(result string, value func(forward.Counts) uint64) prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "agentledger_node_passes_total",
		Help:        "Requests forwarded to other nodes, by result.",
		ConstLabels: prometheus.Labels{"result": result}},
		func() float64 { return float64(value(n.proxy.Counts())) })
}
