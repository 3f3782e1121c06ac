package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/agentledger/agentledger/internal/web"
)

// readiness is one condition of /readyz. It returns why the service as a whole
// can't be used, in words for an operator, and "" when it can.
type readiness func(ctx context.Context) string

// readinessTime bounds all conditions of one /readyz together.
const readinessTime = time.Second

// health adds what orchestrators ask: /livez answers 200 as long as the process
// answers, /readyz 503 with the first reason why the service can't be used.
func (s *service) health(r chi.Router, edge *web.Edge) {
	quiet := *edge
	quiet.Quiet = true
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		r.Method(method, "/livez", quiet.Handle(web.Plain(http.HandlerFunc(well))))
		r.Method(method, "/readyz", quiet.Handle(web.Plain(http.HandlerFunc(s.ready))))
	}
}

func well(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func (s *service) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readinessTime)
	defer cancel()
	for _, check := range s.checks {
		if reason := check(ctx); reason != "" {
			w.Header().Set("Retry-After", "1")
			http.Error(w, reason, http.StatusServiceUnavailable)
			return
		}
	}
	well(w, r)
}

// checkStore reads the first ledger of the store.
func (s *service) checkStore(ctx context.Context) string {
	for _, err := range s.store.engine.Tenants(ctx) {
		if err != nil {
			return "the store can't be read"
		}
		break
	}
	return ""
}

// longestAppend is how long an append may be out while the service counts as ready.
const longestAppend = 5 * time.Second

// checkAppends says when the store does not take appends.
func (s *service) checkAppends(context.Context) string {
	return tooLong(s.ledgers.OldestAppend())
}

func tooLong(age time.Duration) string {
	if age <= longestAppend {
		return ""
	}
	return fmt.Sprintf("the oldest append has been out for %d s", age/time.Second)
}
