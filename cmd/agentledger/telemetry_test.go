package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestTraceDeliversSpans(t *testing.T) {
	paths := make(chan string, 8)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths <- r.URL.Path }))
	defer receiver.Close()
	tracer, stop, err := newTracer(t.Context(), traceOptions{endpoint: receiver.URL, ratio: 1, version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	_, s := tracer.StartSpan(t.Context(), "request")
	s.End()
	if err := stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-paths; got != "/v1/traces" {
		t.Errorf("got %s, want /v1/traces", got)
	}
}

func TestTraceIsOffWithoutAnEndpoint(t *testing.T) {
	tracer, stop, err := newTracer(t.Context(), traceOptions{})
	if err != nil || tracer.Enabled() {
		t.Errorf("got on %v, %v", tracer.Enabled(), err)
	}
	if err := stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestBuildInfo(t *testing.T) {
	registry := prometheus.NewRegistry()
	registerBuildInfo(registry, "v7")
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetMetric()[0].GetLabel()[1].GetValue() != "v7" {
		t.Errorf("got %v, %v", families, err)
	}
}
