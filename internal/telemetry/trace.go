package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Tracer begins spans.
type Tracer struct{ tracer trace.Tracer }

// NewTracer returns a tracer whose spans go to t.
func NewTracer(t trace.Tracer) Tracer { return Tracer{t} }

// Enabled reports whether spans are wanted.
func (t Tracer) Enabled() bool { return t.tracer != nil }

// StartSpan begins a span below the one in ctx and returns a context that holds it.
// The caller ends it.
func (t Tracer) StartSpan(ctx context.Context, name string) (context.Context, Span) {
	if t.tracer == nil {
		return ctx, Span{}
	}
	ctx, s := t.tracer.Start(ctx, name)
	return ctx, Span{s}
}

// StartServerSpan is StartSpan for the span of a request that a client sent.
func (t Tracer) StartServerSpan(ctx context.Context, name string) (context.Context, Span) {
	if t.tracer == nil {
		return ctx, Span{}
	}
	ctx, s := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{s}
}

// Link names a span that another one has to do with.
type Link struct{ context trace.SpanContext }

// SpanLink returns a link to the span in ctx; the zero Link when there is none.
func (t Tracer) SpanLink(ctx context.Context) Link {
	if t.tracer == nil {
		return Link{}
	}
	return Link{trace.SpanContextFromContext(ctx)}
}

// StartLinkedSpan begins a span that stands for work of several others.
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

// Span is a span under way; the zero value is none.
type Span struct{ span trace.Span }

// End ends the span.
func (s Span) End() {
	if s.span != nil {
		s.span.End()
	}
}

// SetInt adds a number.
func (s Span) SetInt(name string, v int) {
	if s.span != nil {
		s.span.SetAttributes(attribute.Int(name, v))
	}
}

// SetText adds a text.
func (s Span) SetText(name, v string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(name, v))
	}
}

// MarkFailed marks the span as failed, for a reason that may be shown.
func (s Span) MarkFailed(reason string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, reason)
	}
}
