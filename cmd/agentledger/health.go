package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// readiness is one condition of /readyz. It returns why the service as a whole
// can't be used, in words for an operator, and "" when it can.
type readiness func(ctx context.Context) string

// readinessTime bounds all conditions of one /readyz together.
const readinessTime = time.Second

// addHealthRoutes adds the routes for orchestrators: /livez answers 200 as long as the process
// answers, /readyz 503 with the first reason why the service can't be used. A service
// that is read-only is ready, because the public log is up, and says that it is.
func (s *service) addHealthRoutes(r *edge.Router, shared *edge.Edge) {
	quiet := *shared
	quiet.Quiet = true
	var table edge.Table[edge.Handler]
	table.Add(edge.GetAndHead, "/livez", edge.Permission{}, edge.Body{}, edge.Plain(http.HandlerFunc(serveAlive)))
	table.Add(edge.GetAndHead, "/readyz", edge.Permission{}, edge.Body{},
		edge.Plain(http.HandlerFunc(s.serveReadiness)))
	edge.Mount(r, edge.PlainSurface(&quiet), table)
}

func serveAlive(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") }

func (s *service) serveReadiness(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readinessTime)
	defer cancel()
	for _, check := range s.checks {
		if reason := check(ctx); reason != "" {
			w.Header().Set("Retry-After", "1")
			http.Error(w, reason, http.StatusServiceUnavailable)
			return
		}
	}
	if s.store.readOnly {
		fmt.Fprintln(w, "ok, read-only")
		return
	}
	serveAlive(w, r)
}

// checkStore asks whether the store answers.
func (s *service) checkStore(ctx context.Context) string {
	switch err := s.probe.askStore(ctx, s.store.engine); {
	case err == nil:
		return ""
	case ctx.Err() != nil:
		return "the store does not answer"
	}
	return "the store can't be read"
}

// questionTime is after how long a question to the store is given up, so that its
// connection is not kept for ever.
const questionTime = 10 * time.Second

// storeProbe asks the store for its first ledger. All callers share one question at a
// time, because a store that hangs must not be asked more and more.
type storeProbe struct {
	mu  sync.Mutex
	out *question // nil when none is
}

type question struct {
	answered chan struct{} // closed when err is set
	err      error
}

// askStore returns why the store can't be read, or the error of ctx when that ends before
// the store has answered.
func (p *storeProbe) askStore(ctx context.Context, store interface {
	Tenants(ctx context.Context) iter.Seq2[id.Tenant, error]
}) error {
	p.mu.Lock()
	q := p.out
	if q == nil {
		q = &question{answered: make(chan struct{})}
		p.out = q
		go p.readFirstTenant(context.WithoutCancel(ctx), q, store.Tenants)
	}
	p.mu.Unlock()
	select {
	case <-q.answered:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *storeProbe) readFirstTenant(ctx context.Context, q *question,
	tenants func(context.Context) iter.Seq2[id.Tenant, error]) {
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	for _, q.err = range tenants(ctx) {
		break
	}
	p.mu.Lock()
	p.out = nil
	p.mu.Unlock()
	close(q.answered)
}

// longestAppend is how long an append may be out while the service counts as ready.
const longestAppend = 5 * time.Second

// checkAppends says when the store does not take appends.
func (s *service) checkAppends(context.Context) string {
	return appendDelayReason(s.ledgers.OldestAppend())
}

func appendDelayReason(age time.Duration) string {
	if age <= longestAppend {
		return ""
	}
	return fmt.Sprintf("the oldest append has been out for %d s", age/time.Second)
}
