package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
)

// countedRequests counts the requests of a client.
type countedRequests struct{ n atomic.Int64 }

func (c *countedRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return http.DefaultTransport.RoundTrip(r)
}

// BenchmarkGuardedAct is an allowed act that takes no time, with a real server and a journal on disk: the time
// of an act, and its requests.
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
	a := guard.Action{Tool: "acme.refund", Payload: map[string]any{"amount_usd": 84.5, "currency": "USD"}}
	before := counted.n.Load()
	b.ResetTimer()
	for b.Loop() {
		if _, err := actions.Run(b.Context(), a, func(context.Context, guard.Permit) (any, error) { return 1, nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(counted.n.Load()-before)/float64(b.N), "requests/op")
}
