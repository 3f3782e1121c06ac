package edge

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
)

// Metrics counts requests and error responses. Label values are bounded: routes are patterns
// and codes are codes of faults. A nil *Metrics counts nothing.
type Metrics struct {
	inFlight prometheus.Gauge
	seconds  *prometheus.HistogramVec // by route and class of status
	refusals *prometheus.CounterVec   // by status and code
}

// NewMetrics registers the metrics of all edges of a process.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "agentledger_http_requests_in_flight", Help: "Requests in flight."}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "agentledger_http_request_seconds", Help: "Time from the headers of a request to the end of its response.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 14)}, []string{"route", "class"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "agentledger_refusals_total",
			Help: "Error responses by status and code, including batch lines."}, []string{"status", "code"}),
	}
	r.MustRegister(m.inFlight, m.seconds, m.refusals)
	for _, alarming := range [][2]string{{"500", ""}, {"503", "unavailable"}, {"503", "outcome_unknown"}} {
		m.refusals.WithLabelValues(alarming[0], alarming[1]) // so that the first one is an increase
	}
	return m
}

// CountRefusal counts an error in a response with several results, such as a line
// of a batch. Handle counts all other error responses.
func (m *Metrics) CountRefusal(err error) {
	if m == nil {
		return
	}
	f := fault.Of(err)
	m.refusals.WithLabelValues(strconv.Itoa(statusOfKind(f.Kind)), codeOfFault(f)).Inc()
}

// routeMeter counts the requests of a route. It caches the histogram of each class of statuses.
type routeMeter struct {
	metrics *Metrics
	route   string // its pattern
	classes [6]atomic.Pointer[prometheus.Observer]
}

func newRouteMeter(metrics *Metrics, route string) *routeMeter {
	return &routeMeter{metrics: metrics, route: route}
}

func (m *routeMeter) countBegin() {
	if m.metrics != nil {
		m.metrics.inFlight.Inc()
	}
}

func (m *routeMeter) observeEnd(a *answer, took time.Duration) {
	if m.metrics == nil {
		return
	}
	m.metrics.inFlight.Dec()
	class := min(max(a.status, http.StatusOK)/100, len(m.classes)-1)
	seconds := m.classes[class].Load()
	if seconds == nil {
		child := m.metrics.seconds.WithLabelValues(m.route, strconv.Itoa(class)+"xx")
		seconds = &child
		m.classes[class].Store(seconds)
	}
	(*seconds).Observe(took.Seconds())
	if a.failure != nil {
		m.metrics.CountRefusal(a.failure)
	}
}
