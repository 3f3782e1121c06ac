package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/agentledger/agentledger/internal/clock"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/programversion"
	"github.com/agentledger/agentledger/internal/telemetry"
)

// observation is the log, metrics and traces of a process.
type observation struct {
	logger   *slog.Logger
	registry *prometheus.Registry
	tracer   telemetry.Tracer
	stop     func(context.Context) error // delivers the last spans
	clocks   clock.Source                // of the service's clock
}

func newObservation(ctx context.Context, c config.Serve, logger *slog.Logger) (*observation, error) {
	tracer, stop, err := newTracer(ctx, tracerOptions{Endpoint: c.TraceEndpoint, Ratio: c.TraceRatio,
		Service: "agentledger", Version: programversion.Read().Short(), Getenv: os.Getenv, Logger: logger})
	if err != nil {
		return nil, err
	}
	o := &observation{logger: logger, registry: prometheus.NewRegistry(), tracer: tracer, stop: stop,
		clocks: clock.Machine()}
	o.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerBuildInfo(o.registry, programversion.Read().Short(), c.PublicURL)
	return o, nil
}

// logOnlyObservation is for commands that do not serve: it has a log, and no metrics or traces.
func logOnlyObservation(logger *slog.Logger) *observation {
	return &observation{logger: logger, registry: prometheus.NewRegistry(), clocks: clock.Machine(),
		stop: func(context.Context) error { return nil }}
}

// newEdge returns the edge of all surfaces.
func (o *observation) newEdge() *edge.Edge {
	return &edge.Edge{Logger: o.logger, Metrics: edge.NewMetrics(o.registry), Tracer: o.tracer}
}

// registerRequestMetrics registers the metrics of requests that were not answered in time.
func (o *observation) registerRequestMetrics(b *edge.Bound) {
	o.registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_http_requests_late_total",
			Help: "Requests that were answered before their handler returned, because it exceeded the time limit.",
		}, func() float64 { return float64(b.AnsweredLate()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_http_requests_left", Help: "Handlers that are still running although their requests were answered.",
		}, func() float64 { return float64(b.LeftBehind()) }),
	)
}

// registerConnectionMetrics registers the metrics of a listener.
func (o *observation) registerConnectionMetrics(name string, l *listener.Listener) {
	labels := prometheus.Labels{"listener": name}
	o.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "agentledger_connections", Help: "Open connections.", ConstLabels: labels,
		}, func() float64 { return float64(l.Connections().Open) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_connections_evicted_total", Help: "Idle connections that were closed to free capacity.",
			ConstLabels: labels,
		}, func() float64 { return float64(l.Connections().Evicted) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "agentledger_connections_refused_total", Help: "Connections rejected for lack of capacity.",
			ConstLabels: labels,
		}, func() float64 { return float64(l.Connections().Refused) }),
	)
}
