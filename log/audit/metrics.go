package audit

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
)

// metrics of the last round that ended are of all ledgers together.
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
			Help: "When the last round of the re-verification over all ledgers ended."}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_reverify_oldest_pass_timestamp_seconds",
			Help: "When the last pass from the first event on began, of the ledger for which that is longest ago."}),
		events: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_reverified_position_events",
			Help: "Events up to the re-verified positions of all ledgers."}),
		faulty: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentledger_faulty_ledgers", Help: "Ledgers with a known fault, by its level."}, []string{"level"}),
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
			Help: "Events that are not re-verified yet, of all ledgers together.",
		}, func() float64 { return float64(a.backlog.countEvents()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_reverify_lag_seconds",
			Help: "How long ago the oldest event that is not re-verified yet was received; 0 when all are.",
		}, a.lagSeconds),
	)
}

func (a *Auditor) lagSeconds() float64 {
	if since := a.backlog.findOldest(); since != 0 {
		return max(0, a.clock().Sub(since.Time()).Seconds())
	}
	return 0
}

// round is the sum over all ledgers of one round.
type round struct {
	events id.Index   // re-verified
	oldest id.Instant // when the oldest last pass of a ledger began, 0 for none
	levels map[log.Level]int
	worst  map[log.Level][]id.Tenant // at most maxWorst of each level that is a fault
}

// maxWorst bounds the ledgers that WorstLedgers names.
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

// WorstLedgers returns at most ten ledgers with a fault, the worst level first, as the last look at all ledgers found
// them. Ledgers that moved, that have a successor or that are being imported are not among them.
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
