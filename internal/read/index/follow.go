package index

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wait"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// retryPause is how long a ledger waits after a step that failed.
const retryPause = 5 * time.Second

// Run follows all ledgers until ctx ends. Ledgers take turns of one step each. It MUST be called once
// only.
func (x *Index) Run(ctx context.Context, logger *slog.Logger) {
	var under sync.WaitGroup
	defer under.Wait()
	moves := x.ledgers.Moves()
	under.Go(func() { x.enqueueAll(ctx, logger) })
	under.Go(func() {
		for wait.For(ctx, retryPause) == nil {
			x.queue.enqueueFailed()
		}
	})
	for ctx.Err() == nil {
		x.enqueueMoved(moves)
		if t, found := x.queue.takeFirst(); found {
			x.runStep(ctx, t, logger)
			continue
		}
		select {
		case <-ctx.Done():
		case <-x.queue.changed:
		case <-moves.Ready():
		}
	}
}

// runStep takes one step, and brings the ledger back into the queue when another one is due.
func (x *Index) runStep(ctx context.Context, t id.Tenant, logger *slog.Logger) {
	more, err := x.advance(ctx, t)
	switch {
	case more || errors.Is(err, storage.ErrStale):
		x.queue.enqueue(t)
	case err != nil && ctx.Err() == nil:
		x.metrics.failures.Inc()
		logger.Error("the index could not be written", "tenant", uint64(t), "err", err)
		x.queue.postpone(t)
	}
}

func (x *Index) enqueueMoved(moves *log.Moves) {
	for _, t := range moves.Take() {
		x.queue.enqueue(t)
	}
}

// enqueueAll brings every ledger that may have an index into the queue, because it may have moved before
// the start.
func (x *Index) enqueueAll(ctx context.Context, logger *slog.Logger) {
	for {
		err := x.enqueueTenants(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		logger.Error("the ledgers could not be listed for the index", "err", err)
		if wait.For(ctx, retryPause) != nil {
			return
		}
	}
}

func (x *Index) enqueueTenants(ctx context.Context) error {
	for t, err := range x.store.Tenants(ctx) {
		if err != nil {
			return err
		}
		head, err := x.store.Head(ctx, t) // the ledger need not be brought into memory
		if err != nil {
			return err
		}
		if head.Size >= chunkEvents {
			x.queue.enqueue(t)
		}
	}
	return nil
}

// queue is the ledgers that may have a step to take, each once, in the order in which they came.
type queue struct {
	mu      sync.Mutex
	clock   func() time.Time
	waiting map[id.Tenant]time.Time // since when
	order   []id.Tenant
	failed  []id.Tenant   // to be tried again later
	changed chan struct{} // holds a token while a reader may have to look
}

func (q *queue) setUp(clock func() time.Time) {
	q.clock, q.waiting, q.changed = clock, make(map[id.Tenant]time.Time), make(chan struct{}, 1)
}

func (q *queue) enqueue(t id.Tenant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.waiting[t]; known {
		return
	}
	q.waiting[t] = q.clock()
	q.order = append(q.order, t)
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// postpone keeps a ledger for enqueueFailed.
func (q *queue) postpone(t id.Tenant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failed = append(q.failed, t)
}

// enqueueFailed enqueues the ledgers that were postponed.
func (q *queue) enqueueFailed() {
	q.mu.Lock()
	failed := q.failed
	q.failed = nil
	q.mu.Unlock()
	for _, t := range failed {
		q.enqueue(t)
	}
}

func (q *queue) takeFirst() (t id.Tenant, found bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return 0, false
	}
	t, q.order = q.order[0], q.order[1:]
	delete(q.waiting, t)
	return t, true
}

// oldest returns for how long the first ledger has been waiting, and how many wait.
func (q *queue) oldest() (time.Duration, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return 0, 0
	}
	return q.clock().Sub(q.waiting[q.order[0]]), len(q.order)
}

// metrics of the follower. No organization is a label.
type metrics struct {
	steps, failures prometheus.Counter
}

func newMetrics(r prometheus.Registerer, q *queue) *metrics {
	m := &metrics{
		steps: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_index_writes_total", Help: "Writes of the index of events."}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "agentledger_index_failures_total", Help: "Steps of the index that failed and are tried again."}),
	}
	r.MustRegister(m.steps, m.failures,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_index_lag_seconds",
			Help: "For how long the first ledger has been waiting for its turn in the index.",
		}, func() float64 { since, _ := q.oldest(); return since.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_index_waiting_ledgers", Help: "Ledgers that wait for their turn in the index.",
		}, func() float64 { _, n := q.oldest(); return float64(n) }))
	return m
}
