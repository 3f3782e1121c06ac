package streamexport

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/follow"
)

// metrics counts the events of exports and measures how far exports are behind.
type metrics struct {
	events, requests *prometheus.CounterVec

	mu   sync.Mutex
	lags map[id.Tenant]follow.Lag // of exports that were behind at their last look
}

func newMetrics(r prometheus.Registerer, now func() id.Instant) *metrics {
	m := &metrics{
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_stream_export_events_total",
			Help: "Events that receivers of stream exports accepted (sent) or rejected permanently (rejected).",
		}, []string{"result"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_stream_export_requests_total",
			Help: "Requests with events to receivers of stream exports by result: delivered, failed (will be retried).",
		}, []string{"result"}),
		lags: make(map[id.Tenant]follow.Lag),
	}
	if r == nil {
		r = prometheus.NewRegistry()
	}
	r.MustRegister(m.events, m.requests,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_stream_export_lag_events",
			Help: "Events that exports had not sent at their last attempt, of all organizations.",
		}, func() float64 { events, _ := m.total(); return float64(events) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_stream_export_lag_seconds",
			Help: "Age of the oldest event that an export has not sent, of all organizations; 0 if there is none.",
		}, func() float64 {
			_, oldest := m.total()
			if oldest == 0 {
				return 0
			}
			return max(float64(now()-oldest), 0) / 1000
		}))
	return m
}

// note records how far an export is behind after a batch.
func (m *metrics) note(b *follow.Batch, r follow.Result) {
	lag := lagAfter(b, r)
	m.mu.Lock()
	defer m.mu.Unlock()
	if lag.Received == 0 {
		delete(m.lags, b.Tenant)
		return
	}
	m.lags[b.Tenant] = lag
}

func (m *metrics) forget(t id.Tenant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.lags, t)
}

// total returns the number of unsent events of all exports, and when the oldest one was received.
func (m *metrics) total() (events id.Index, oldest id.Instant) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, lag := range m.lags {
		events += lag.Events
		if oldest == 0 || lag.Received < oldest {
			oldest = lag.Received
		}
	}
	return events, oldest
}

// furthestBehind returns at most n organizations whose exports are behind, the one with the oldest unsent event first.
func (m *metrics) furthestBehind(n int) []id.Tenant {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.SortedFunc(maps.Keys(m.lags), func(a, b id.Tenant) int {
		return cmp.Or(cmp.Compare(m.lags[a].Received, m.lags[b].Received), cmp.Compare(a, b))
	})
	return all[:min(len(all), n)]
}
