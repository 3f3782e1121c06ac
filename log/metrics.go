package log

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/storage"
)

// commitMetrics are the metrics of appends and of ledger faults. No label is an organization, because a service may have a
// hundred thousand.
type commitMetrics struct {
	batchEvents prometheus.Histogram
	batchOrgs   prometheus.Histogram

	Commit    prometheus.Histogram // seconds
	Published prometheus.Counter
	Failures  *prometheus.CounterVec // failed batches, by causeOf
	Faults    *prometheus.CounterVec // by level
	BadProofs prometheus.Counter
	Missing   prometheus.Gauge // ledgers with an anchor that are not in the store
}

// newCommitMetrics registers the metrics. levels are the values of the label of faults.
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
			Help:    "Time from passing an append to the storage engine until it is durable.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 14)}),
		Published: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_heads_published_total", Help: "New heads published to readers."}),
		Failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_append_failures_total",
			Help: "Failed ledger batches of appends, by cause."}, []string{"cause"}),
		Faults: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_ledger_faults_total", Help: "Ledger faults detected, by level."}, []string{"level"}),
		BadProofs: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_bad_proofs_total", Help: "Proofs that failed verification before they were served."}),
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

// ObserveBatches observes the size of an append.
func (m *commitMetrics) ObserveBatches(batches []storage.Batch) {
	events := 0
	for i := range batches {
		events += len(batches[i].Events)
	}
	m.batchEvents.Observe(float64(events))
	m.batchOrgs.Observe(float64(len(batches)))
}

// causeOf returns the value of the label "cause" for the error of a batch.
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

// registerGauges registers the metrics that are computed when they are collected.
func (l *Ledgers) registerGauges(r prometheus.Registerer) {
	refused := func(bound string, i int) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_queue_overload_total", Help: "Submissions rejected because too many events were waiting, by the bound that was reached.",
			ConstLabels: prometheus.Labels{"bound": bound},
		}, func() float64 { l.queue.mu.Lock(); defer l.queue.mu.Unlock(); return float64(l.queue.refused[i]) })
	}
	limit := func(bound string, n int) prometheus.Collector {
		g := prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_queue_limit_events", Help: "Maximum number of waiting events, in total and per organization.",
			ConstLabels: prometheus.Labels{"bound": bound},
		})
		g.Set(float64(n))
		return g
	}
	r.MustRegister(refused("all", 0), refused("organization", 1),
		limit("all", l.maxWaiting), limit("organization", l.maxWaitingTenant),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_queue_events", Help: "Events waiting to be appended.",
		}, func() float64 { l.queue.mu.Lock(); defer l.queue.mu.Unlock(); return float64(l.queue.waiting) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_append_oldest_seconds", Help: "How long the oldest append has been in flight, or 0.",
		}, func() float64 { return l.OldestAppend().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_anchor_lag_seconds", Help: "How long the oldest state without an anchor has been waiting for it.",
		}, func() float64 { return l.anchors.Lag().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_anchor_journal_bytes", Help: "Size of the anchor journal.",
		}, func() float64 { return float64(l.anchors.JournalBytes()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_anchors_lost_total", Help: "Times the anchor folder or journal was found removed or replaced.",
		}, func() float64 { return float64(l.anchors.TimesLost()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_ledgers_ahead_of_clock", Help: "Ledgers that accept no events because their latest event was received in the future.",
		}, func() float64 { return float64(l.ahead.countAhead()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_resident_ledgers", Help: "Ledgers in memory.",
		}, func() float64 { l.slotsMu.RLock(); defer l.slotsMu.RUnlock(); return float64(len(l.slots)) }),
	)
}

// OldestAppend returns how long the oldest append has been in flight, or 0. It shows whether the store completes appends.
func (l *Ledgers) OldestAppend() time.Duration { return l.queue.oldestAppend() }

// observeAppend observes the duration of an append that has ended.
func (l *Ledgers) observeAppend(f appendInFlight) {
	if f.pending == nil {
		return
	}
	f.span.End()
	l.metrics.Commit.Observe(l.queue.now().Sub(f.round.began).Seconds())
}

// collectLinks returns links to the spans of the requests in an append, or nil if tracing is off.
func collectLinks(t telemetry.Tracer, batches []*ledgerBatch) []telemetry.Link {
	if !t.Enabled() {
		return nil
	}
	var all []telemetry.Link
	for _, p := range batches {
		for _, s := range p.sent {
			all = append(all, s.link)
		}
	}
	return all
}
