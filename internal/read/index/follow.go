package index

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/log"
)

// newFollower returns the follower of all ledgers. One step is made at a time, of each ledger in turn.
func (x *Index) newFollower() *follow.Follower {
	return follow.New(follow.Options{Records: x.store, Ledgers: x.ledgers, Positions: kindProgress, Work: x.takeIn,
		All: x.store, Least: chunkEvents, Places: 1, Turn: 1, Clock: x.clock})
}

// Run follows all ledgers until ctx ends. It MUST be called once only.
func (x *Index) Run(ctx context.Context, logger *slog.Logger) { x.follower.Run(ctx, logger) }

// noteDelay notes how late the events below end are taken in. A follower that catches up is left out, because
// its events are old.
func (x *Index) noteDelay(s *log.State, end id.Index, newest id.Instant) {
	if newest > 0 && s.Size()-end < chunkEvents {
		x.metrics.delay.Observe(float64(id.InstantOf(x.clock())-newest) / 1000)
	}
}

// metrics of the follower. No organization is a label.
type metrics struct {
	steps, failures prometheus.Counter
	delay           prometheus.Histogram
}

func newMetrics(r prometheus.Registerer, f *follow.Follower) *metrics {
	m := &metrics{
		steps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_index_writes_total", Help: "Writes of the index of events."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_index_failures_total", Help: "Steps of the index that failed and are tried again."}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "agentledger_index_delay_seconds",
			Help:    "From the time of the newest event that a write of the index takes in to the write.",
			Buckets: []float64{.05, .1, .2, .5, 1, 1.5, 2, 3, 5, 10, 30, 60, 300}}),
	}
	r.MustRegister(m.steps, m.failures, m.delay,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_index_lag_seconds",
			Help: "For how long the first ledger has been waiting for its turn in the index.",
		}, func() float64 { since, _ := f.Waiting(); return since.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_index_waiting_ledgers", Help: "Ledgers that wait for their turn in the index.",
		}, func() float64 { _, n := f.Waiting(); return float64(n) }))
	return m
}
