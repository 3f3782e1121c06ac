package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/http/edge"
)

// readiness is one condition of /readyz. It returns why the service as a whole can't be used, in words for an operator, or
// "" if it can.
type readiness func(ctx context.Context) string

// readinessTime bounds all conditions of one /readyz together.
const readinessTime = time.Second

// addHealthRoutes adds the routes for orchestrators. /livez is 200 as long as the process responds. /readyz and, in JSON,
// /health are 503 with the first reason why the service can't be used. A read-only service is ready, because the public
// log is up, and the response indicates the mode. Query parameters are ignored, because a probe must not fail because of
// one.
func (s *service) addHealthRoutes(r *edge.Router, shared *edge.Edge) {
	quiet := *shared
	quiet.Quiet = true
	var table edge.Table[edge.Handler]
	table.Add(edge.GetAndHead, "/livez", edge.Permission{}, edge.Body{}, edge.Plain(http.HandlerFunc(serveAlive))).
		TakesAnyQuery()
	table.Add(edge.GetAndHead, "/readyz", edge.Permission{}, edge.Body{},
		edge.Plain(http.HandlerFunc(s.serveReadiness))).TakesAnyQuery()
	table.Add(edge.GetAndHead, "/health", edge.Permission{}, edge.Body{}, s.serveHealth).TakesAnyQuery()
	edge.Mount(r, edge.PlainSurface(&quiet), table)
}

func serveAlive(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

// findUnreadiness returns the first reason why the service can't be used, or "".
func (s *service) findUnreadiness(ctx context.Context) (reason string) {
	ctx, cancel := context.WithTimeout(ctx, readinessTime)
	defer cancel()
	for _, check := range s.checks {
		if reason = check(ctx); reason != "" {
			break
		}
	}
	return reason
}

// registerReadyMetric registers readiness as a metric. Each scrape runs the checks of /readyz.
func (s *service) registerReadyMetric() {
	s.watch.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "agentledger_ready", Help: "1 if /readyz is 200, else 0.",
	}, func() float64 {
		if s.findUnreadiness(context.Background()) != "" {
			return 0
		}
		return 1
	}))
}

// health is the answer of /health.
type health struct {
	Status string `json:"status"`           // ok, read_only or unavailable
	Reason string `json:"reason,omitempty"` // why it is unavailable
}

// findHealth returns the health of the service.
func (s *service) findHealth(ctx context.Context) health {
	if reason := s.findUnreadiness(ctx); reason != "" {
		return health{Status: "unavailable", Reason: reason}
	}
	if s.store.ReadOnly {
		return health{Status: "read_only"}
	}
	return health{Status: "ok"}
}

func (s *service) serveHealth(w http.ResponseWriter, r *http.Request) error {
	found, status := s.findHealth(r.Context()), http.StatusOK
	if found.Reason != "" {
		w.Header().Set("Retry-After", "1")
		status = http.StatusServiceUnavailable
	}
	return edge.WriteJSON(w, status, found)
}

func (s *service) serveReadiness(w http.ResponseWriter, r *http.Request) {
	if reason := s.findUnreadiness(r.Context()); reason != "" {
		w.Header().Set("Retry-After", "1")
		http.Error(w, reason, http.StatusServiceUnavailable)
		return
	}
	if s.store.ReadOnly {
		fmt.Fprintln(w, "ok, read-only")
		return
	}
	serveAlive(w, r)
}

// checkStore returns an error unless the store responds.
func (s *service) checkStore(ctx context.Context) string {
	switch err := s.probe.CheckStore(ctx, s.store.Engine); {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return "the store does not answer"
	}
	return "the store can't be read"
}

// longestAppend is how long an append may be in flight while the service counts as ready.
const longestAppend = 5 * time.Second

// checkAppends returns an error if the store does not complete appends.
func (s *service) checkAppends(context.Context) string {
	return appendDelayReason(s.ledgers.OldestAppend())
}

func appendDelayReason(age time.Duration) string {
	if age <= longestAppend {
		return ""
	}
	return fmt.Sprintf("the oldest append has been out for %d s", age/time.Second)
}
