package log

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/trace"
)

// registerGauges registers what is read off when somebody asks.
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
			Name: "agentledger_reverify_lag_events", Help: "Events that are not re-verified yet, of all ledgers together.",
		}, func() float64 { return float64(l.backlog.events()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_reverify_lag_seconds", Help: "How long ago the oldest event that is not re-verified yet was received; 0 when all are.",
		}, l.reverifyLag),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_leaf_cache_bytes", Help: "Leaf hashes kept in memory for proofs.",
		}, func() float64 { return float64(l.leafCache.Weight()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_ledgers_ahead_of_clock", Help: "Ledgers that were found to take no events, because their newest one was received at a time that has not come.",
		}, func() float64 { return float64(l.early.count()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_resident_ledgers", Help: "Ledgers in memory.",
		}, func() float64 { l.residentMu.RLock(); defer l.residentMu.RUnlock(); return float64(len(l.resident)) }),
	)
}

// reverifyLag is how long ago the oldest event that waits for the re-verification was
// received, in seconds.
func (l *Ledgers) reverifyLag() float64 {
	since := l.backlog.oldest()
	if since == 0 {
		return 0
	}
	return max(0, l.clock().Sub(since.Time()).Seconds())
}

// round is what one round of the re-verification has seen of all ledgers together.
type round struct {
	events id.Index   // re-verified
	oldest id.Instant // beginning of the oldest pass that is the last of its ledger; 0: none
	levels map[Level]int
}

func newRound() *round {
	return &round{levels: map[Level]int{Suspect: 0, ReadOnly: 0, Importing: 0, Moved: 0, Frozen: 0, Succeeded: 0}}
}

func (r *round) add(v Reverified, level Level) {
	r.events += v.To
	if v.Since != 0 && level != Succeeded && (r.oldest == 0 || v.Since < r.oldest) {
		r.oldest = v.Since
	}
	if level != Healthy {
		r.levels[level]++
	}
}

// roundMetrics are of the last round that ended, all ledgers together.
type roundMetrics struct {
	ended, oldest, events prometheus.Gauge
	faulty                *prometheus.GaugeVec // by level
}

func newRoundMetrics(r prometheus.Registerer) roundMetrics {
	m := roundMetrics{
		ended: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_reverify_round_timestamp_seconds", Help: "When the last round of the re-verification over all ledgers ended."}),
		oldest: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_reverify_oldest_pass_timestamp_seconds", Help: "When the last pass from the first event on began, of the ledger for which that is longest ago."}),
		events: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_reverified_position_events", Help: "Events up to the re-verified positions of all ledgers."}),
		faulty: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "agentledger_faulty_ledgers", Help: "Ledgers with a known fault, by its level."}, []string{"level"}),
	}
	r.MustRegister(m.ended, m.oldest, m.events, m.faulty)
	for _, level := range []Level{Suspect, ReadOnly, Importing, Moved, Frozen, Succeeded} {
		m.faulty.WithLabelValues(string(level))
	}
	return m
}

func (m roundMetrics) set(r *round, now time.Time) {
	m.ended.Set(float64(now.Unix()))
	m.oldest.Set(float64(r.oldest.Time().Unix()))
	m.events.Set(float64(r.events))
	for level, n := range r.levels {
		m.faulty.WithLabelValues(string(level)).Set(float64(n))
	}
}

// faultLevel returns what is known of a ledger without loading it.
func (l *Ledgers) faultLevel(ctx context.Context, t id.Tenant) Level {
	l.residentMu.RLock()
	r := l.resident[t]
	l.residentMu.RUnlock()
	if r != nil {
		select {
		case <-r.ready:
			if r.led != nil {
				return l.levelOf(ctx, t, r.led.published.Load().fault.Level)
			}
		default:
		}
	}
	f, err := l.storedFault(ctx, t)
	if err != nil {
		return Healthy
	}
	return l.levelOf(ctx, t, f.Level)
}

func (l *Ledgers) levelOf(ctx context.Context, t id.Tenant, level Level) Level {
	if now, err := l.orSucceeded(ctx, t, level); err == nil {
		return now
	}
	return level
}

// OldestAppend returns for how long the oldest append that is out has been out, 0
// when none is. It says whether the store takes appends.
func (l *Ledgers) OldestAppend() time.Duration { return l.queue.oldest() }

// observe notes how long an append took that has ended.
func (l *Ledgers) observe(f flight) {
	if f.pending == nil {
		return
	}
	f.span.End()
	l.metrics.commit.Observe(l.queue.now().Sub(f.round.began).Seconds())
}

// links returns the spans of those who wait for an append, nil when nobody traces.
func links(t trace.Tracer, parts []*part) []trace.Link {
	if !t.Enabled() {
		return nil
	}
	var all []trace.Link
	for _, p := range parts {
		for _, s := range p.sent {
			all = append(all, s.link)
		}
	}
	return all
}
