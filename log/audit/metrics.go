package audit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// metrics describe all ledgers as of the last complete round.
type metrics struct {
	verified              prometheus.Counter
	ended, oldest, events prometheus.Gauge
	faulty                *prometheus.GaugeVec // by level
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		verified: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_reverified_events_total", Help: "Events checked by the background re-verification."}),
		ended: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_reverify_round_timestamp_seconds",
			Help: "Time at which the last re-verification round over all ledgers ended."}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_reverify_oldest_pass_timestamp_seconds",
			Help: "Oldest start time among the latest complete passes of all ledgers."}),
		events: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_reverified_position_events",
			Help: "Events before the re-verified positions of all ledgers."}),
		faulty: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentledger_faulty_ledgers", Help: "Ledgers with a known fault, by level."}, []string{"level"}),
	}
	r.MustRegister(m.verified, m.ended, m.oldest, m.events, m.faulty)
	for level := range newRound().levels {
		m.faulty.WithLabelValues(string(level))
	}
	return m
}

// registerLag registers the metrics of the backlog.
func (a *Auditor) registerLag(r prometheus.Registerer) {
	r.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_reverify_lag_events",
			Help: "Events of all ledgers that are not re-verified yet.",
		}, func() float64 { return float64(a.backlog.countEvents()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_reverify_lag_seconds",
			Help: "Age of the oldest event that is not re-verified yet, or 0.",
		}, a.lagSeconds),
	)
}

func (a *Auditor) lagSeconds() float64 {
	if since := a.backlog.findOldest(); since != 0 {
		return max(0, a.clock().Sub(since.Time()).Seconds())
	}
	return 0
}

// round is the sum over all ledgers in one round.
type round struct {
	events id.Index   // re-verified
	oldest id.Instant // start of the oldest latest pass, or 0
	levels map[log.Level]int
	worst  map[log.Level][]id.Tenant // at most maxWorst per level
}

// maxWorst bounds the ledgers that WorstLedgers returns.
const maxWorst = 10

func newRound() *round {
	return &round{levels: map[log.Level]int{log.Suspect: 0, log.ReadOnly: 0, log.Held: 0, log.Importing: 0, log.Moved: 0,
		log.Frozen: 0, log.Succeeded: 0}, worst: make(map[log.Level][]id.Tenant)}
}

func (r *round) countLedger(t id.Tenant, v log.Reverified, level log.Level) {
	r.events += v.To
	if v.Since != 0 && level != log.Succeeded && (r.oldest == 0 || v.Since < r.oldest) {
		r.oldest = v.Since
	}
	if level != log.Healthy {
		r.levels[level]++
		if len(r.worst[level]) < maxWorst {
			r.worst[level] = append(r.worst[level], t)
		}
	}
}

// WorstLedgers returns at most ten ledgers with a fault as of the last round, worst level first. It leaves out ledgers
// that were moved, have a successor, or are being imported.
func (a *Auditor) WorstLedgers() (worst []id.Tenant) {
	last := a.lastRound.Load()
	if last == nil {
		return nil
	}
	for _, level := range []log.Level{log.Frozen, log.Held, log.ReadOnly, log.Suspect} {
		worst = append(worst, last.worst[level]...)
	}
	return worst[:min(len(worst), maxWorst)]
}

func (m *metrics) setRoundGauges(r *round, now time.Time) {
	m.ended.Set(float64(now.Unix()))
	m.oldest.Set(float64(r.oldest.Time().Unix()))
	m.events.Set(float64(r.events))
	for level, n := range r.levels {
		m.faulty.WithLabelValues(string(level)).Set(float64(n))
	}
}
