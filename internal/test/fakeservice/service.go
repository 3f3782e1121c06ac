// Package fakeservice is a small agentledger service in memory, for tests of programs that are clients of one.
//
// Invariants:
//
//   - It answers the ingest and public calls as the interface specifies, for several organizations, each with one
//     agent, one key and one ingest key.
//   - Its logs are real: signatures are checked, and entries, proofs, bundles and checkpoints pass package verify.
//     Trees and proofs follow the formulas of RFC 6962 directly.
//   - Faults happen only when a test requests them. Everything derives from fixed seeds.
package fakeservice

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// Service is a running service. It stops at the end of the test.
type Service struct {
	URL string

	mu            sync.Mutex
	organizations []*Organization
	faults        []Fault
	lineFaults    []Fault
	requests      []Request
}

// Request is a received request, as tests see it.
type Request struct {
	Method, Path   string
	IdempotencyKey string
	Version        string // Service-Version
}

// Start serves n organizations until the test ends.
func Start(t testing.TB, n int) *Service {
	t.Helper()
	s := &Service{}
	for i := range n {
		s.organizations = append(s.organizations, newOrganization(t, i))
	}
	server := httptest.NewServer(s.handler())
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Organization returns the nth organization, from 0.
func (s *Service) Organization(n int) *Organization { return s.organizations[n] }

// Requests returns the requests so far, in order.
func (s *Service) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Service) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/ingest/events", s.postEvent)
	mux.HandleFunc("POST /v1/ingest/events/batch", s.postBatch)
	mux.HandleFunc("POST /v1/ingest/policy/evaluate", s.postEvaluate)
	mux.HandleFunc("GET /v1/public/orgs/{slug}/transparency/head", s.getHead)
	mux.HandleFunc("GET /v1/public/orgs/{slug}/transparency/checkpoint", s.getCheckpoint)
	mux.HandleFunc("GET /v1/public/orgs/{slug}/transparency/inclusion", s.getInclusion)
	mux.HandleFunc("GET /v1/public/orgs/{slug}/transparency/consistency", s.getConsistency)
	mux.HandleFunc("GET /v1/public/orgs/{slug}/transparency/keys", s.getKeys)
	mux.HandleFunc("GET /v1/public/orgs/{slug}/verify/{event}", s.getBundle)
	mux.HandleFunc("GET /v1/public/agents/{agent}/did", s.getAgentDID)
	mux.HandleFunc("GET /v1/public/did/{did}", s.getDID)
	mux.HandleFunc("GET /o/{organization}/checkpoint", s.getTileCheckpoint)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeRefusal(w, http.StatusNotFound, "Not found", "")
	})
	return s.nextFault(mux)
}

// findOrganization returns the organization that match accepts, or nil if there is none.
func (s *Service) findOrganization(match func(*Organization) bool) *Organization {
	if i := slices.IndexFunc(s.organizations, match); i >= 0 {
		return s.organizations[i]
	}
	return nil
}
