package pgstore

import "github.com/prometheus/client_golang/prometheus"

// Collector returns figures of the connections, for telemetry.
func (e *Engine) Collector() prometheus.Collector {
	const prefix = "agentledger_store_"
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + name, Help: help}, value)
	}
	counter := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: prefix + name, Help: help}, value)
	}
	return collectors{
		gauge("format", "Version of the schema.", func() float64 { return float64(e.fence.known) }),
		gauge("readers", "Connections that are open for reads, barriers and changes of records.", func() float64 { return float64(e.pool.Stat().TotalConns()) }),
		gauge("readers_busy", "Those in use.", func() float64 { return float64(e.pool.Stat().AcquiredConns()) }),
		counter("readers_waited_total", "Calls that had to wait for one of them.", func() float64 { return float64(e.pool.Stat().EmptyAcquireCount()) }),
		counter("lost_connections_total", "Connections that were lost in an append: its outcome was unknown.", func() float64 { return float64(e.lost.Load()) }),
		counter("split_appends_total", "Appends of several ledgers that were done again one by one.", func() float64 { return float64(e.split.Load()) }),
	}
}

// collectors are several as one.
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
