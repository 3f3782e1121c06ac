package index

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
	"github.com/agentledger/agentledger/log"
)

// newFollower returns the follower of all ledgers. It makes one step at a time, of each ledger in turn.
func (x *Index) newFollower() *follow.Follower {
	return follow.New(follow.Options{Records: x.store, Ledgers: x.ledgers, Positions: kindProgress, Work: x.takeIn,
		All: x.store, Least: chunkEvents, Places: 1, Turn: 1, Clock: x.clock})
}

// Run follows all ledgers until ctx ends. It must be called only once.
func (x *Index) Run(ctx context.Context, logger *slog.Logger) { x.follower.Run(ctx, logger) }

// noteDelay records how late the events below end are indexed. It ignores a follower that is catching up, because its
// events are old.
func (x *Index) noteDelay(s *log.State, end id.Index, newest id.Instant) {
	if newest > 0 && s.Size()-end < chunkEvents {
		x.metrics.delay.Observe(float64(id.InstantOf(x.clock())-newest) / 1000)
	}
}

// metrics of the follower. Organizations are not a label.
type metrics struct {
	steps, failures prometheus.Counter
	delay           prometheus.Histogram
}

func newMetrics(r prometheus.Registerer, f *follow.Follower) *metrics {
	m := &metrics{
		steps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_index_writes_total", Help: "Writes of the index of events."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_index_failures_total", Help: "Steps of the index that failed and will be retried."}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "agentledger_index_delay_seconds",
			Help:    "Time from the latest event that a write of the index contains to the write.",
			Buckets: []float64{.05, .1, .2, .5, 1, 1.5, 2, 3, 5, 10, 30, 60, 300}}),
	}
	r.MustRegister(m.steps, m.failures, m.delay,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_index_lag_seconds",
			Help: "How long the first ledger has been waiting for its turn in the index.",
		}, func() float64 { since, _ := f.Waiting(); return since.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_index_waiting_ledgers", Help: "Ledgers that wait for their turn in the index.",
		}, func() float64 { _, n := f.Waiting(); return float64(n) }))
	return m
}
