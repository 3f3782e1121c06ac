package pebblestore

import "github.com/prometheus/client_golang/prometheus"

// Collector returns the engine's Metrics as a Prometheus collector. A scrape reads them once.
func (e *Engine) Collector() prometheus.Collector {
	c := collector{engine: e}
	add := func(name, help string, t prometheus.ValueType, value func(Metrics) float64) {
		c.figures = append(c.figures, figure{prometheus.NewDesc("agentledger_store_"+name, help, nil, nil), t, value})
	}
	gauge, counter := prometheus.GaugeValue, prometheus.CounterValue
	add("disk_bytes", "All files of the store.", gauge, func(m Metrics) float64 { return float64(m.DiskBytes) })
	add("log_bytes", "Write-ahead log that a restart would have to replay.", gauge, func(m Metrics) float64 { return float64(m.LogBytes) })
	add("memtable_bytes", "Data that is not yet in tables.", gauge, func(m Metrics) float64 { return float64(m.MemTableBytes) })
	add("memory_bytes", "Memory of memtables and of cached blocks.", gauge, func(m Metrics) float64 { return float64(m.MemoryBytes) })
	add("compaction_debt_bytes", "Estimated bytes that compaction has yet to process.", gauge, func(m Metrics) float64 { return float64(m.CompactionDebt) })
	add("read_amplification", "Tables that a read may have to search.", gauge, func(m Metrics) float64 { return float64(m.ReadAmp) })
	add("format", "Format of the store's files.", gauge, func(Metrics) float64 { return float64(e.file.storeFormat()) })
	add("cache_hits_total", "Block reads served by the cache.", counter, func(m Metrics) float64 { return float64(m.CacheHits) })
	add("cache_misses_total", "Block reads not served by the cache.", counter, func(m Metrics) float64 { return float64(m.CacheMisses) })
	return c
}

type collector struct {
	engine  *Engine
	figures []figure
}

type figure struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Metrics) float64
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range c.figures {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	m := c.engine.Metrics()
	for _, f := range c.figures {
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, f.value(m))
	}
}
