package main

import (
	"context"
	"maps"
	"runtime"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The metric is 1 as long as /readyz is 200, and 0 as soon as one condition fails.
func TestReadyMetric(t *testing.T) {
	reasons := []string{"", ""}
	s := &service{watch: &observation{registry: prometheus.NewRegistry()}}
	for i := range reasons {
		s.checks = append(s.checks, func(context.Context) string { return reasons[i] })
	}
	s.registerReadyMetric()
	ready := func() float64 {
		families, err := s.watch.registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "agentledger_ready" {
			t.Fatalf("got %v, %v", families, err)
		}
		return families[0].GetMetric()[0].GetGauge().GetValue()
	}
	if got := ready(); got != 1 {
		t.Errorf("without a reason: got %g", got)
	}
	reasons[1] = "the store does not answer"
	if got := ready(); got != 0 {
		t.Errorf("with a reason: got %g", got)
	}
}

func TestBuildInfo(t *testing.T) {
	registry := prometheus.NewRegistry()
	registerBuildInfo(registry, "v7", "https://log.example")
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("got %v, %v", families, err)
	}
	got := make(map[string]string)
	for _, label := range families[0].GetMetric()[0].GetLabel() {
		got[label.GetName()] = label.GetValue()
	}
	want := map[string]string{"version": "v7", "go": runtime.Version(), "public_url": "https://log.example"}
	if !maps.Equal(got, want) {
		t.Errorf("got labels %v, want %v", got, want)
	}
}
