// Package telemetry contains the parts of logging and tracing that all packages of the service share: log handlers that
// suppress repeated lines and adjust levels, and a tracer that costs next to nothing while tracing is off. Callers do not
// import OpenTelemetry.
//
// Invariants:
//
//   - Memory does not grow with the number of lines or spans.
//   - Names and attributes of spans are constants and numbers of the program, never values from a client.
package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Tracer starts OpenTelemetry spans. The zero Tracer is off: it starts no span, allocates nothing and returns contexts
// unchanged.
type Tracer struct{ tracer trace.Tracer }

// NewTracer returns a tracer whose spans go to t.
func NewTracer(t trace.Tracer) Tracer { return Tracer{t} }

// Enabled reports whether tracing is on.
func (t Tracer) Enabled() bool { return t.tracer != nil }

// StartSpan starts a child of the span in ctx and returns a context that contains it. The caller must end it.
func (t Tracer) StartSpan(ctx context.Context, name string) (context.Context, Span) {
	if t.tracer == nil {
		return ctx, Span{}
	}
	ctx, s := t.tracer.Start(ctx, name)
	return ctx, Span{s}
}

// StartServerSpan is like StartSpan, for a request that a client sent.
func (t Tracer) StartServerSpan(ctx context.Context, name string) (context.Context, Span) {
	if t.tracer == nil {
		return ctx, Span{}
	}
	ctx, s := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{s}
}

// Link is a reference from one span to another.
type Link struct{ context trace.SpanContext }

// SpanLink returns a link to the span in ctx, or the zero Link if there is none.
func (t Tracer) SpanLink(ctx context.Context) Link {
	if t.tracer == nil {
		return Link{}
	}
	return Link{trace.SpanContextFromContext(ctx)}
}

// StartLinkedSpan starts a root span for work that several others share.
func (t Tracer) StartLinkedSpan(name string, links []Link) Span {
	if t.tracer == nil {
		return Span{}
	}
	all := make([]trace.Link, 0, len(links))
	for _, l := range links {
		if l.context.IsValid() {
			all = append(all, trace.Link{SpanContext: l.context})
		}
	}
	_, s := t.tracer.Start(context.Background(), name, trace.WithNewRoot(), trace.WithLinks(all...))
	return Span{s}
}

// Span is a started span. The methods of the zero Span do nothing.
type Span struct{ span trace.Span }

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// SetInt sets an attribute.
func (s Span) SetInt(name string, v int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(name, v))
	}
}

// SetText sets an attribute.
func (s Span) SetText(name, v string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(name, v))
	}
}

// MarkFailed marks the span as failed. reason must not contain values from a client.
func (s Span) MarkFailed(reason string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, reason)
	}
}
