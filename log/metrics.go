package log

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/storage"
)

// commitMetrics are the metrics of appends and of ledger faults. Their labels have fixed values; no label is an
// organization, because a service may have a hundred thousand. They may be used concurrently.
type commitMetrics struct {
	batchEvents prometheus.Histogram
	batchOrgs   prometheus.Histogram

	Commit    prometheus.Histogram // seconds
	Published prometheus.Counter
	Failures  *prometheus.CounterVec // batches that were not applied, by causeOf
	Faults    *prometheus.CounterVec // by level
	BadProofs prometheus.Counter
	Missing   prometheus.Gauge // ledgers that have an anchor and are not in the store
}

// newCommitMetrics registers the metrics. levels are the levels of faults.
func newCommitMetrics(r prometheus.Registerer, levels ...string) *commitMetrics {
	m := &commitMetrics{
		batchEvents: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "agentledger_append_events", Help: "Events in one append.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11)}),
		batchOrgs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "agentledger_append_organizations", Help: "Organizations in one append.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 11)}),
		Commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "agentledger_append_seconds",
			Help:    "Time from handing an append to the engine until it is durable.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 14)}),
		Published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_heads_published_total", Help: "New heads shown to readers."}),
		Failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_append_failures_total",
			Help: "Parts of appends that failed, by cause."}, []string{"cause"}),
		Faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_ledger_faults_total", Help: "Faults found in ledgers."}, []string{"level"}),
		BadProofs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_bad_proofs_total", Help: "Proofs that failed verification and were not served."}),
		Missing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_missing_ledgers",
			Help: "Ledgers that have an anchor but are missing from the store, as of the start."}),
	}
	r.MustRegister(m.batchEvents, m.batchOrgs, m.Commit, m.Published, m.Failures, m.Faults, m.BadProofs,
		m.Missing)
	for _, cause := range []string{"duplicate", "stale", "conflict", "unknown", "broken", "unavailable"} {
		m.Failures.WithLabelValues(cause)
	}
	for _, level := range levels {
		m.Faults.WithLabelValues(level)
	}
	return m
}

// ObserveBatches records the sizes of an append.
func (m *commitMetrics) ObserveBatches(batches []storage.Batch) {
	events := 0
	for i := range batches {
		events += len(batches[i].Events)
	}
	m.batchEvents.Observe(float64(events))
	m.batchOrgs.Observe(float64(len(batches)))
}

// causeOf returns the value of the label "cause" for an append's error.
func causeOf(err error) string {
	switch {
	case errors.Is(err, storage.ErrDuplicate):
		return "duplicate"
	case errors.Is(err, storage.ErrStale):
		return "stale"
	case errors.Is(err, storage.ErrConflict):
		return "conflict"
	case errors.Is(err, storage.ErrUnknown):
		return "unknown"
	case errors.Is(err, storage.ErrBroken):
		return "broken"
	}
	return "unavailable"
}
