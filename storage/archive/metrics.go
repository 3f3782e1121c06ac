package archive

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
)

// figures are the metrics of an archive.
type figures struct {
	bundles, bytes, reads, rewritten prometheus.Counter
	failures                         *prometheus.CounterVec
	oldest                           *oldest
}

// oldest tracks how long the bundle that has been due for the longest time has been waiting.
type oldest struct {
	mu            sync.Mutex
	seconds, seen float64
}

func newFigures() figures {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "agentledger_archive_" + name, Help: help})
	}
	f := figures{
		bundles:   counter("bundles_moved_total", "Bundles of 256 events whose texts were moved to objects."),
		bytes:     counter("moved_bytes_total", "Bytes of the objects of moved bundles."),
		reads:     counter("reads_total", "Bundles read from the object store."),
		rewritten: counter("rewrites_total", "Bundles processed after an erasure."),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentledger_archive_failures_total",
			Help: "Failed steps, by step."}, []string{"step"}),
		oldest: new(oldest),
	}
	for _, step := range []string{"write", "read back", "read", "erase", "delete", "damaged"} {
		f.failures.WithLabelValues(step)
	}
	return f
}

func (f *figures) fail(step string) { f.failures.WithLabelValues(step).Inc() }

// noteWaiting records that a bundle could not be moved, and for how many milliseconds it has been due.
func (o *oldest) noteWaiting(since id.Instant) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = max(o.seen, float64(since)/1000)
}

// endPass publishes what the pass has recorded.
func (o *oldest) endPass() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seconds, o.seen = o.seen, 0
}

func (o *oldest) read() float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seconds
}

// Metrics returns the archive's metrics.
func (e *Engine) Metrics() []prometheus.Collector {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "agentledger_archive_" + name, Help: help}, value)
	}
	return []prometheus.Collector{
		e.figures.bundles, e.figures.bytes, e.figures.reads, e.figures.rewritten, e.figures.failures,
		gauge("oldest_waiting_seconds", "Time since the oldest bundle that could not be moved became due.",
			e.figures.oldest.read),
		gauge("erasure_waiting_seconds", "Age of the oldest erasure whose objects are not rewritten yet.",
			func() float64 { _, longest := e.waiting(); return longest.Seconds() }),
	}
}
