// Package telemetry is what a process says about itself as a whole: what it was
// built from, and where its spans go. The metrics of each package are its own.
//
// Invariants:
//
//   - Without an endpoint for spans there is no exporter, no goroutine and no
//     network.
//   - Spans that can't be delivered are dropped: nothing waits for them but a stop,
//     and that for as long as it is told to.
package telemetry

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

// service is the name of the process in traces.
const service = "agentledger"

// BuildInfo registers a metric that is always 1 and whose labels say which version
// runs.
func BuildInfo(r prometheus.Registerer, version string) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agentledger_build_info", Help: "1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	info.Set(1)
	r.MustRegister(info)
}

// TraceOptions configure Trace.
type TraceOptions struct {
	Endpoint string  // base URL of an OTLP/HTTP receiver, http://127.0.0.1:4318; "" for no traces
	Ratio    float64 // of requests that are traced, 0 to 1
	Version  string  // of the program
}

// Trace returns a tracer and what delivers the last spans at the end. Without an
// endpoint the tracer is off.
func Trace(ctx context.Context, o TraceOptions) (trace.Tracer, func(context.Context) error, error) {
	if o.Endpoint == "" {
		return trace.Tracer{}, func(context.Context) error { return nil }, nil
	}
	receiver, err := url.JoinPath(o.Endpoint, "v1/traces") // where OTLP/HTTP has them
	if err != nil {
		return trace.Tracer{}, nil, fmt.Errorf("export traces: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(receiver))
	if err != nil {
		return trace.Tracer{}, nil, fmt.Errorf("export traces: %w", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", service), attribute.String("service.version", o.Version))),
	)
	return trace.New(provider.Tracer(service)), provider.Shutdown, nil
}
