package main

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestBuildInfo(t *testing.T) {
	registry := prometheus.NewRegistry()
	registerBuildInfo(registry, "v7")
	families, err := registry.Gather()
	if err != nil || len(families) != 1 || families[0].GetMetric()[0].GetLabel()[1].GetValue() != "v7" {
		t.Errorf("got %v, %v", families, err)
	}
}
