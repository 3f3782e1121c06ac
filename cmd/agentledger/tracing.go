package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/agentledger/agentledger/internal/telemetry"
)

// tracerOptions configure newTracer.
type tracerOptions struct {
	Endpoint string                   // base URL of a receiver, such as http://127.0.0.1:4318; if empty, tracing is off
	Ratio    float64                  // fraction of requests that are traced, 0 to 1
	Service  string                   // name of the process in traces
	Version  string                   // of the program
	Getenv   func(name string) string // returns an environment variable, or ""
	Logger   *slog.Logger             // logs spans that were not delivered
}

// newTracer returns a tracer that sends the program's spans to a receiver by OTLP/HTTP in protobuf, and a function that
// delivers the last spans on exit. It returns an error if the endpoint or the environment is invalid; it does not contact
// the receiver.
//
//   - Without an endpoint, the tracer is off: there is no exporter, no goroutine and no network.
//   - At most 2,048 spans wait in memory. Spans that cannot be delivered are dropped, which is logged.
//   - No redirect is followed, because requests may carry the operator's credentials.
//   - OpenTelemetry's variables OTEL_EXPORTER_OTLP_… set the headers, timeout, compression and certificates of requests.
//     The endpoint is set by the operator's settings alone, and the protocol is always http/protobuf.
func newTracer(ctx context.Context, o tracerOptions) (telemetry.Tracer, func(context.Context) error, error) {
	if o.Endpoint == "" {
		return telemetry.Tracer{}, func(context.Context) error { return nil }, nil
	}
	c, err := newClient(o)
	if err != nil {
		return telemetry.Tracer{}, nil, fmt.Errorf("export traces: %w", err)
	}
	exporter, err := otlptrace.New(ctx, c)
	if err != nil {
		return telemetry.Tracer{}, nil, fmt.Errorf("export traces: %w", err)
	}
	provider := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter),
		sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Ratio))),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", o.Service), attribute.String("service.version", o.Version))),
	)
	return telemetry.NewTracer(provider.Tracer(o.Service)), provider.Shutdown, nil
}

func newClient(o tracerOptions) (*traceClient, error) {
	base, err := url.Parse(o.Endpoint)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, errors.New("the endpoint is not an http or https URL")
	}
	s, err := readSettings(o.Getenv)
	if err != nil {
		return nil, err
	}
	if s.header.Get("User-Agent") == "" {
		s.header.Set("User-Agent", o.Service+"/"+o.Version)
	}
	return &traceClient{
		address: base.JoinPath("v1/traces").String(), // where OTLP/HTTP has them
		header:  s.header, timeout: s.timeout, plain: s.plain, logger: o.Logger,
		http: newHTTPClient(s),
	}, nil
}

func newHTTPClient(s settings) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: s.tls, ForceAttemptHTTP2: true,
			IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
