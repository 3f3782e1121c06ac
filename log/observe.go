package log

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/telemetry"
)

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

// FaultLevel returns the known level of a ledger without loading it. stored is the value of its record
// of KindFault, nil for none. One that can't be read counts as the worst fault.
func (l *Ledgers) FaultLevel(ctx context.Context, t id.Tenant, stored []byte) Level {
	l.slotsMu.RLock()
	r := l.slots[t]
	l.slotsMu.RUnlock()
	if r != nil {
		select {
		case <-r.ready:
			if r.led != nil {
				return l.levelOrSucceeded(ctx, t, r.led.published.Load().fault.Level)
			}
		default:
		}
	}
	var f Fault
	if stored != nil && (json.Unmarshal(stored, &f) != nil || !f.Level.isWorseThan(Healthy)) {
		f.Level = Frozen
	}
	return l.levelOrSucceeded(ctx, t, f.Level)
}

func (l *Ledgers) levelOrSucceeded(ctx context.Context, t id.Tenant, level Level) Level {
	if now, err := l.levelWithSuccessor(ctx, t, level); err == nil {
		return now
	}
	return level
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
