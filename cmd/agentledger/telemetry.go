package main

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// registerBuildInfo registers a metric that is always 1 and whose labels identify the version and the service.
func registerBuildInfo(r prometheus.Registerer, version, publicURL string) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agentledger_build_info", Help: "1; the labels identify the version and the service.",
		ConstLabels: prometheus.Labels{"version": version, "go": runtime.Version(), "public_url": publicURL},
	})
	info.Set(1)
	r.MustRegister(info)
}
