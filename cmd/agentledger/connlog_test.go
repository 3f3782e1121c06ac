package main

import (
	"net/http"
	"testing"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/edge"
)

// Every handler of every listener is behind the edge, which turns a panic into a response of 500: the request id shows
// it.
func TestAllHandlersAreBehindTheEdge(t *testing.T) {
	s := startHere(t, func(c *config.Serve) {})
	for _, url := range []string{
		s.mainURL() + "/livez", s.mainURL() + "/readyz", s.mainURL() + "/openapi.json", s.mainURL() + "/none",
		s.mainURL() + "/v1/public/orgs/none/transparency/head", s.mainURL() + "/v1/ingest/events", s.mainURL() + "/v1/console/agents",
		s.identityURL() + "/livez", s.identityURL() + "/readyz", s.identityURL() + "/v1/id/auth/me", s.identityURL() + "/none",
		s.listeners.URL(metricsListener) + "/metrics", s.listeners.URL(metricsListener) + "/debug/pprof/", s.listeners.URL(metricsListener) + "/debug/pprof/heap",
	} {
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if len(r.Header.Get(edge.RequestIDHeader)) != 24 {
			t.Errorf("%s: %s without a request id", url, r.Status)
		}
	}
}
