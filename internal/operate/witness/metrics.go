package witness

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/egress"
)

// metrics are the metrics of submissions. The label is the name of a witness of the service, or "own" for the
// witnesses of all organizations.
type metrics struct {
	calls          *prometheus.CounterVec // by status; 0 means no response
	seconds        *prometheus.HistogramVec
	unreached      *prometheus.CounterVec // calls without a response, by egress.Class
	asks           *prometheus.CounterVec
	contradictions prometheus.Counter
	anchored       prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_witness_calls_total",
			Help: "Calls to witnesses, by response status; 0 means no response."}, []string{"witness", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "agentledger_witness_call_seconds", Help: "Duration of calls to witnesses.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 12)}, []string{"witness"}),
		unreached: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_witness_unanswered_total",
			Help: "Calls to witnesses without a response, by class of error: " +
				"dns, refused, timeout, tls, address, connection, too_large."}, []string{"witness", "class"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_witness_asks_total",
			Help: "Submissions to witnesses, of up to three calls each, by result."}, []string{"witness", "result"}),
		contradictions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_witness_contradictions_total",
			Help: "Witnesses that have seen a tree that a ledger does not extend. Each is an alarm."}),
		anchored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_witness_anchored_total",
			Help: "Heads without an anchor that were confirmed by a quorum of witnesses."}),
	}
	r.MustRegister(m.calls, m.seconds, m.unreached, m.asks, m.contradictions, m.anchored)
	return m
}

// registerGauges registers the gauges that are read when metrics are scraped.
func (m *metrics) registerGauges(r prometheus.Registerer, w *Witnesses) {
	r.MustRegister(
		cache.StaleCounter("cosignatures", w.views.StaleAnswers),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_witness_ledgers",
			Help: "Ledgers with new events that are waiting for their witnesses. Ledgers without witnesses do not count.",
		}, func() float64 { n, _ := w.queue.countAndOldest(); return float64(n) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_witness_wait_seconds",
			Help: "Longest time that a ledger has been waiting for its witnesses.",
		}, func() float64 {
			_, since := w.queue.countAndOldest()
			if since.IsZero() {
				return 0
			}
			return w.Clock().Sub(since).Seconds()
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_witness_oldest_quorum_seconds",
			Help: "Largest age of a ledger's latest quorum under the service's policy; 0 if there is none. Updated by hourly sweeps.",
		}, func() float64 {
			oldest := id.Instant(w.oldest.Load())
			if oldest == 0 {
				return 0
			}
			return w.Clock().Sub(oldest.Time()).Seconds()
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_witness_overflow_total",
			Help: "Ledgers that changed while the queue was full; a sweep finds them.",
		}, func() float64 { w.queue.mu.Lock(); defer w.queue.mu.Unlock(); return float64(w.queue.overflow) }),
	)
	for _, e := range w.base.endpoints {
		for _, t := range e.targets {
			r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "agentledger_witness_resting", Help: "Whether a witness is paused after failures.",
				ConstLabels: prometheus.Labels{"witness": t.label},
			}, func() float64 {
				if e.breaker.isResting(w.Clock()) {
					return 1
				}
				return 0
			}))
		}
	}
}

// observeCall records one call.
func (m *metrics) observeCall(witness string, status int, d time.Duration) {
	if status < 0 || status > 599 {
		status = 599
	}
	m.calls.WithLabelValues(witness, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(witness).Observe(d.Seconds())
}

// countUnanswered records a call without a response.
func (m *metrics) countUnanswered(witness string, c egress.Class) {
	m.unreached.WithLabelValues(witness, string(c)).Inc()
}

// countResults records the result of a submission for each key of its endpoint.
func (m *metrics) countResults(e *endpoint, a outcome) {
	for _, t := range e.targets {
		m.asks.WithLabelValues(t.label, string(a.resultForKey(t))).Inc()
	}
}
