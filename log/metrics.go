package log

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/telemetry"
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

// registerGauges registers the metrics whose values are computed when they are read.
func (l *Ledgers) registerGauges(r prometheus.Registerer) {
	refused := func(bound string, i int) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_queue_overload_total", Help: "Submissions refused since too many events waited, by the bound that was reached.",
			ConstLabels: prometheus.Labels{"bound": bound},
		}, func() float64 { l.queue.mu.Lock(); defer l.queue.mu.Unlock(); return float64(l.queue.refused[i]) })
	}
	limit := func(bound string, n int) prometheus.Collector {
		g := prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_queue_limit_events", Help: "Events that may wait, in all and of one organization.",
			ConstLabels: prometheus.Labels{"bound": bound},
		})
		g.Set(float64(n))
		return g
	}
	r.MustRegister(refused("all", 0), refused("organization", 1),
		limit("all", l.maxWaiting), limit("organization", l.maxWaitingTenant),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_queue_events", Help: "Events that wait to be put into an append.",
		}, func() float64 { l.queue.mu.Lock(); defer l.queue.mu.Unlock(); return float64(l.queue.waiting) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_append_oldest_seconds", Help: "For how long the oldest append that is out has been out, 0 when none is.",
		}, func() float64 { return l.OldestAppend().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_anchor_lag_seconds", Help: "For how long the oldest newer state has been waiting for its anchor.",
		}, func() float64 { return l.anchors.Lag().Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_anchor_journal_bytes", Help: "Size of the anchors' journal.",
		}, func() float64 { return float64(l.anchors.JournalBytes()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_anchors_lost_total", Help: "How often the anchors' folder or journal was found to be removed or replaced.",
		}, func() float64 { return float64(l.anchors.TimesLost()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_ledgers_ahead_of_clock", Help: "Ledgers that were found to take no events, because their newest one was received at a time that has not come.",
		}, func() float64 { return float64(l.ahead.countAhead()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_resident_ledgers", Help: "Ledgers in memory.",
		}, func() float64 { l.slotsMu.RLock(); defer l.slotsMu.RUnlock(); return float64(len(l.slots)) }),
	)
}

// OldestAppend returns for how long the oldest append that is out has been out, 0
// when none is. It says whether the store takes appends.
func (l *Ledgers) OldestAppend() time.Duration { return l.queue.oldestAppend() }

// observeAppend notes how long an append took that has ended.
func (l *Ledgers) observeAppend(f appendInFlight) {
	if f.pending == nil {
		return
	}
	f.span.End()
	l.metrics.Commit.Observe(l.queue.now().Sub(f.round.began).Seconds())
}

// collectLinks returns the spans of the requests that wait for an append, nil when tracing is off.
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
