package main

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// registerBuildInfo registers a metric that is always 1 and whose labels say which version runs.
func registerBuildInfo(r prometheus.Registerer, version string) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agentledger_build_info", Help: "1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version()},
	})
	info.Set(1)
	r.MustRegister(info)
}
