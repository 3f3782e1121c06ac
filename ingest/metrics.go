package ingest

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/admission"
)

// metrics of the API. Labels are bounded, and the counters are resolved once.
type metrics struct {
	events    [refused + 1]prometheus.Counter // by fate
	decisions [id.Deny + 1]prometheus.Counter // of evaluations
	shadows   prometheus.Counter
	verify    prometheus.Histogram
}

func newMetrics(r prometheus.Registerer, p *admission.RefusalPacer, polls *admission.Limit,
	limits ...*admission.Limit) *metrics {
	events := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_ingest_events_total",
		Help: "Events by result, including batch lines."}, []string{"result"})
	decisions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentledger_evaluations_total", Help: "Evaluations by decision."}, []string{"decision"})
	shadows := prometheus.NewCounter(prometheus.CounterOpts{
		Name: "agentledger_shadow_rule_matches_total",
		Help: "Matches of shadow rules, which do not affect decisions, by evaluations and events."})
	m := &metrics{shadows: shadows, verify: prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "agentledger_signature_verification_seconds", Help: "Time to verify one signature.",
		Buckets: prometheus.ExponentialBuckets(0.00002, 2, 10)})}
	for f, name := range map[eventFate]string{created: "created", replayed: "replayed", refused: "refused"} {
		m.events[f] = events.WithLabelValues(name)
	}
	for d := id.Allow; d <= id.Deny; d++ {
		m.decisions[d] = decisions.WithLabelValues(d.String())
	}
	r.MustRegister(events, decisions, shadows, m.verify)
	registerLimits(r, p, limits)
	registerPolls(r, polls)
	return m
}

func registerLimits(r prometheus.Registerer, p *admission.RefusalPacer, limits []*admission.Limit) {
	sum := func(count func(*admission.Limit) float64) func() float64 {
		return func() (all float64) {
			for _, l := range limits {
				all += count(l)
			}
			return all
		}
	}
	refusals := func(bound string, count func(admission.Refused) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "agentledger_ingest_overload_total",
			Help:        "Requests refused because of too many requests in flight, by the bound that was reached.",
			ConstLabels: prometheus.Labels{"bound": bound},
		}, sum(func(l *admission.Limit) float64 { return float64(count(l.Refused())) }))
	}
	r.MustRegister(
		refusals("all", func(n admission.Refused) uint64 { return n.All }),
		refusals("organization", func(n admission.Refused) uint64 { return n.One }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_ingest_in_flight",
			Help: "Weight of the requests in flight: one each, and one for each 64 KiB of body.",
		}, sum(func(l *admission.Limit) float64 { return float64(l.WeightInUse()) })),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_ingest_held_refusals_total",
			Help: "Refusals that were delayed because there were too many.",
		}, func() float64 { return float64(p.DelayedRefusals()) }),
	)
}

func registerPolls(r prometheus.Registerer, polls *admission.Limit) {
	refusals := func(bound string, count func(admission.Refused) uint64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "agentledger_poll_overload_total",
			Help:        "Long polls refused because too many are waiting, by the bound that was reached.",
			ConstLabels: prometheus.Labels{"bound": bound},
		}, func() float64 { return float64(count(polls.Refused())) })
	}
	r.MustRegister(
		refusals("all", func(n admission.Refused) uint64 { return n.All }),
		refusals("organization", func(n admission.Refused) uint64 { return n.One }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "agentledger_polls_waiting", Help: "Waiting long polls."},
			func() float64 { return float64(polls.WeightInUse()) }),
	)
}

// observeVerification records the duration of a verification that began at began.
func (m *metrics) observeVerification(began time.Time) { m.verify.Observe(time.Since(began).Seconds()) }
