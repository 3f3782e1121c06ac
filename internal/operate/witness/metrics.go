package witness

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/http/egress"
)

// metrics of the submissions. The label is the name of a witness of the service, or
// "own" for the witnesses of all organizations.
type metrics struct {
	calls          *prometheus.CounterVec // by status; 0 is no answer
	seconds        *prometheus.HistogramVec
	unreached      *prometheus.CounterVec // calls without an answer, by egress.Class
	asks           *prometheus.CounterVec
	contradictions prometheus.Counter
	anchored       prometheus.Counter
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_witness_calls_total",
			Help: "Calls to witnesses, by the status of the answer; 0 is none."}, []string{"witness", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "agentledger_witness_call_seconds", Help: "Duration of calls to witnesses.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 12)}, []string{"witness"}),
		unreached: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_witness_unanswered_total",
			Help: "Calls to witnesses that have no answer, by the class of the error: " +
				"dns, refused, timeout, tls, address, connection, too_large."}, []string{"witness", "class"}),
		asks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_witness_asks_total",
			Help: "Asks of witnesses, of up to three calls each, by how they ended."}, []string{"witness", "result"}),
		contradictions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_witness_contradictions_total",
			Help: "Witnesses that know of a tree which a ledger does not extend. Each is an alarm."}),
		anchored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_witness_anchored_total",
			Help: "Heads without an anchor that a quorum of witnesses confirmed."}),
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
			Help: "Ledgers with new events that wait for their witnesses. Ledgers without witnesses do not count.",
		}, func() float64 { n, _ := w.queue.countAndOldest(); return float64(n) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_witness_wait_seconds",
			Help: "For how long the ledger that waits longest for its witnesses does.",
		}, func() float64 {
			_, since := w.queue.countAndOldest()
			if since.IsZero() {
				return 0
			}
			return w.Clock().Sub(since).Seconds()
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_witness_oldest_quorum_seconds",
			Help: "How long ago a quorum of the service's policy last cosigned the ledger for which that is longest ago. Hourly sweeps find it; 0 if there is none.",
		}, func() float64 {
			oldest := id.Instant(w.oldest.Load())
			if oldest == 0 {
				return 0
			}
			return w.Clock().Sub(oldest.Time()).Seconds()
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_witness_overflow_total",
			Help: "Ledgers that moved and found no room; a sweep finds them.",
		}, func() float64 { w.queue.mu.Lock(); defer w.queue.mu.Unlock(); return float64(w.queue.overflow) }),
	)
	for _, e := range w.base.endpoints {
		for _, t := range e.targets {
			r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "agentledger_witness_resting", Help: "Whether a witness is left alone since it was not well.",
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

// observeCall notes one call.
func (m *metrics) observeCall(witness string, status int, d time.Duration) {
	if status < 0 || status > 599 {
		status = 599
	}
	m.calls.WithLabelValues(witness, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(witness).Observe(d.Seconds())
}

// countUnanswered notes a call without an answer.
func (m *metrics) countUnanswered(witness string, c egress.Class) {
	m.unreached.WithLabelValues(witness, string(c)).Inc()
}

// countResults notes the result of a submission for each key of its endpoint.
func (m *metrics) countResults(e *endpoint, a outcome) {
	for _, t := range e.targets {
		m.asks.WithLabelValues(t.label, string(a.resultForKey(t))).Inc()
	}
}
