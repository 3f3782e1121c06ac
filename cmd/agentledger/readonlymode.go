package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/cmd/agentledger/datadir"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/log/anchor"
)

// openServedStore opens the store of a service. Unless the service is read-only, the first start creates the store.
func openServedStore(ctx context.Context, c config.Serve, logger *slog.Logger,
	fatal func(error)) (*datadir.Store, error) {
	if c.ReadOnly {
		return datadir.OpenReadOnly(ctx, c.Store, c.Tuning, logger, anchor.OpenReadOnly)
	}
	return datadir.OpenServed(ctx, c.Store, c.Tuning, logger, fatal)
}

// registerModeMetric registers the metric of the read-only mode.
func (s *service) registerModeMetric() {
	mode := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "agentledger_read_only_mode", Help: "1 while the service is read-only.",
	})
	if s.store.ReadOnly {
		mode.Set(1)
	}
	s.watch.registry.MustRegister(mode)
}
