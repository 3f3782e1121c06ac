package nodes

import "github.com/prometheus/client_golang/prometheus"

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
	)
}
