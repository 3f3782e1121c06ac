package main

import (
	"context"
	"fmt"
	"net/url"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/agentledger/agentledger/internal/trace"
)

// serviceName is the name of the process in traces.
const serviceName = "agentledger"

// registerBuildInfo registers a metric that is always 1 and whose labels say which version runs.
func registerBuildInfo(r prometheus.Registerer, version string) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agentledger_build_info", Help: "1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	info.Set(1)
	r.MustRegister(info)
}

// traceOptions configure newTracer.
type traceOptions struct {
	endpoint string  // base URL of an OTLP/HTTP receiver, http://127.0.0.1:4318; "" for no traces
	ratio    float64 // of requests that are traced, 0 to 1
	version  string  // of the program
}

// newTracer returns a tracer and a function that delivers the last spans at the end. Without an endpoint the tracer
// is off: there is no exporter, no goroutine and no network. Spans that can't be delivered are dropped.
func newTracer(ctx context.Context, o traceOptions) (trace.Tracer, func(context.Context) error, error) {
	if o.endpoint == "" {
		return trace.Tracer{}, func(context.Context) error { return nil }, nil
	}
	receiver, err := url.JoinPath(o.endpoint, "v1/traces") // where OTLP/HTTP has them
	if err != nil {
		return trace.Tracer{}, nil, fmt.Errorf("export traces: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(receiver))
	if err != nil {
		return trace.Tracer{}, nil, fmt.Errorf("export traces: %w", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.ratio))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", serviceName), attribute.String("service.version", o.version))),
	)
	return trace.New(provider.Tracer(serviceName)), provider.Shutdown, nil
}
