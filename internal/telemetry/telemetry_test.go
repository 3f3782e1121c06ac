package telemetry_test

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agentledger/agentledger/internal/telemetry"
)

// use creates two spans, one the child of the other, and one that is linked to the first.
func use(ctx context.Context, t telemetry.Tracer) {
	ctx, request := t.StartSpan(ctx, "request")
	request.SetText("request_id", "r1")
	_, parse := t.StartSpan(ctx, "parse")
	parse.SetInt("bytes", 7)
	parse.MarkFailed("too short")
	parse.End()
	t.StartLinkedSpan("commit", []telemetry.Link{t.SpanLink(ctx), {}}).End()
	request.End()
}

func TestSpans(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder))
	use(t.Context(), telemetry.NewTracer(provider.Tracer("test")))
	ended := recorder.Ended()
	if len(ended) != 3 {
		t.Fatalf("got %d spans, want 3", len(ended))
	}
	parse, commit, request := ended[0], ended[1], ended[2]
	if parse.Name() != "parse" || parse.Parent().SpanID() != request.SpanContext().SpanID() {
		t.Errorf("got %q below %v, want parse below the request", parse.Name(), parse.Parent())
	}
	if parse.Status().Code != codes.Error || parse.Status().Description != "too short" {
		t.Errorf("status: got %+v", parse.Status())
	}
	if commit.Parent().IsValid() || len(commit.Links()) != 1 || commit.Links()[0].SpanContext.SpanID() != request.SpanContext().SpanID() {
		t.Errorf("commit: got parent %v and links %v, want a root linked to the request", commit.Parent(), commit.Links())
	}
}

func TestOffCostsNothing(t *testing.T) {
	ctx := t.Context()
	var off telemetry.Tracer
	if off.Enabled() {
		t.Error("the zero tracer is on")
	}
	if got := testing.AllocsPerRun(100, func() {
		ctx, s := off.StartSpan(ctx, "request")
		s.SetInt("bytes", 7)
		s.End()
		_ = off.SpanLink(ctx)
	}); got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
	use(ctx, off)
}
