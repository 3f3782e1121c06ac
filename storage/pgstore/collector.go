package pgstore

import "github.com/prometheus/client_golang/prometheus"

// Collector returns metrics about the connections.
func (e *Engine) Collector() prometheus.Collector {
	const prefix = "agentledger_store_"
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help}, value)
	}
	counter := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + name, Help: help}, value)
	}
	return collectors{
		gauge("format", "Version of the database schema.", func() float64 { return float64(e.fence.known) }),
		gauge("readers", "Open connections for reads, barriers and record changes.", func() float64 { return float64(e.pool.Stat().TotalConns()) }),
		gauge("readers_busy", "Connections for reads, barriers and record changes that are in use.", func() float64 { return float64(e.pool.Stat().AcquiredConns()) }),
		counter("readers_waited_total", "Calls that had to wait for a connection for reads, barriers or record changes.", func() float64 { return float64(e.pool.Stat().EmptyAcquireCount()) }),
		counter("lost_connections_total", "Connections lost during an append, whose outcome was then unknown.", func() float64 { return float64(e.lost.Load()) }),
		counter("split_appends_total", "Appends of several ledgers that were retried one ledger at a time.", func() float64 { return float64(e.split.Load()) }),
	}
}

// collectors combines several collectors.
type collectors []prometheus.Collector

// Describe implements prometheus.Collector.
func (c collectors) Describe(out chan<- *prometheus.Desc) {
	for _, one := range c {
		one.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (c collectors) Collect(out chan<- prometheus.Metric) {
	for _, one := range c {
		one.Collect(out)
	}
}
