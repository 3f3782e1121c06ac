package main

import (
	"context"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
)

// countedRequests counts the requests of a client.
type countedRequests struct{ n atomic.Int64 }

func (c *countedRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

// BenchmarkGuardedAct is an allowed act that takes no time, with a real server and a journal on disk, alternating with
// two events that are sent one after the other. It reports the times of both, and the act's requests.
func BenchmarkGuardedAct(b *testing.B) {
	p := startProcess(b, b.TempDir())
	org := p.found(b.Context(), "red", nil)
	counted := new(countedRequests)
	c, err := client.New(client.Config{BaseURL: p.main, Token: org.IngestKey.Secret, HTTP: &http.Client{Transport: counted}})
	if err != nil {
		b.Fatal(err)
	}
	who := client.Identity{Organization: org.OrganizationID, Agent: org.Agent.AgentID, Key: org.Agent.KeyID}
	signer, err := client.ParseSigner(who, org.Agent.PrivateB64)
	if err != nil {
		b.Fatal(err)
	}
	journal, err := guard.OpenJournal(b.TempDir(), guard.JournalOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer journal.Close()
	actions, err := guard.New(guard.Config{Client: c, Signer: signer, Journal: journal})
	if err != nil {
		b.Fatal(err)
	}
	var acts, events []time.Duration
	requests := int64(0)
	for b.Loop() {
		events = append(events, timeTwoEvents(b, c, signer))
		before, began := counted.n.Load(), time.Now()
		a := guard.Action{Tool: "acme.refund", Payload: map[string]any{"amount_usd": 84.5, "currency": "USD"}}
		if _, err := actions.Run(b.Context(), a, func(context.Context, guard.Permit) (any, error) { return 1, nil }); err != nil {
			b.Fatal(err)
		}
		acts = append(acts, time.Since(began))
		requests += counted.n.Load() - before
	}
	b.ReportMetric(float64(requests)/float64(b.N), "requests/act")
	b.ReportMetric(median(acts), "act-p50-ms")
	b.ReportMetric(median(events), "two-events-p50-ms")
}

func timeTwoEvents(b *testing.B, c *client.Client, s *client.Signer) time.Duration {
	began := time.Now()
	for range 2 {
		signed, err := s.SignEvent(client.Event{ActionKind: "message", TraceID: "bench"})
		if err == nil {
			_, err = c.Send(b.Context(), signed)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began)
}

// median returns the median of durations in milliseconds.
func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}
