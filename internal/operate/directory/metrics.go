package directory

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of the directory.
type metrics struct {
	events, listed, failures, contradictions prometheus.Counter
	pending                                  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "agentledger_directory_" + name, Help: help})
		r.MustRegister(c)
		return c
	}
	m := &metrics{
		events:         counter("appends_total", "Appends to the directory."),
		listed:         counter("listed_total", "Trees listed."),
		failures:       counter("failures_total", "Rounds that listed nothing because of an error."),
		contradictions: counter("contradictions_total", "Logs that do not extend their listed tree."),
		pending: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_directory_pending_logs",
			Help: "Logs that grew and are not listed yet.",
		}),
	}
	r.MustRegister(m.pending)
	return m
}

// observeRound records the result of one round.
func (m *metrics) observeRound(listed, pending int, appended bool) {
	if appended {
		m.events.Inc()
	}
	m.listed.Add(float64(listed))
	m.pending.Set(float64(pending))
}
