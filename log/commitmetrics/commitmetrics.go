package log

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/storage"
)

// metrics of the commit path. Labels are bounded: no organization is one.
type metrics struct {
	batchEvents prometheus.Histogram
	batchOrgs   prometheus.Histogram
	commit      prometheus.Histogram // seconds
	published   prometheus.Counter
	failures    *prometheus.CounterVec // batches that were not applied, by cause
	faults      *prometheus.CounterVec // by level
	badProofs   prometheus.Counter
	missing     prometheus.Gauge // ledgers that have an anchor and are not in the store
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		batchEvents: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "agentledger_append_events", Help: "Events in one append.", Buckets: prometheus.ExponentialBuckets(1, 2, 11)}),
		batchOrgs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "agentledger_append_organizations", Help: "Organizations in one append.", Buckets: prometheus.ExponentialBuckets(1, 2, 11)}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "agentledger_append_seconds", Help: "Time from handing an append to the engine until it is durable.", Buckets: prometheus.ExponentialBuckets(0.00025, 2, 14)}),
		published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_heads_published_total", Help: "New heads that readers were shown."}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_append_failures_total", Help: "Parts of appends that did not go through."}, []string{"cause"}),
		faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_ledger_faults_total", Help: "Faults found in ledgers."}, []string{"level"}),
		badProofs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_bad_proofs_total", Help: "Proofs that did not hold and were not served."}),
		missing: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_missing_ledgers", Help: "Ledgers that were shown and are not in the store, as the start found it."}),
	}
	r.MustRegister(m.batchEvents, m.batchOrgs, m.commit, m.published, m.failures, m.faults, m.badProofs, m.missing)
	for _, cause := range []string{"duplicate", "stale", "conflict", "unknown", "broken", "unavailable"} {
		m.failures.WithLabelValues(cause)
	}
	for _, level := range []Level{Suspect, ReadOnly, Frozen} {
		m.faults.WithLabelValues(string(level))
	}
	return m
}

func (m *metrics) observeBatches(batches []storage.Batch) {
	events := 0
	for i := range batches {
		events += len(batches[i].Events)
	}
	m.batchEvents.Observe(float64(events))
	m.batchOrgs.Observe(float64(len(batches)))
}

func failureLabel(err error) string {
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
