package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// serveExample stands in for the service: it allows reads, denies deletions and stores events.
func serveExample(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/v1/ingest/policy/evaluate":
		io.WriteString(w, `{"decision":"allow","policy_id":"shop","rule_id":"reads","reason":"Reading is allowed","engine":"rules"}`)
	case "/v1/ingest/events":
		e, err := event.Parse(body, event.Options{MaxBytes: event.DefaultMaxBytes})
		if err != nil {
			http.Error(w, `{"error":"Invalid event"}`, http.StatusUnprocessableEntity)
			return
		}
		fmt.Fprintf(w, `{"event_id":%q,"status":"created","sequence_num":7,"chain_valid":true}`, e.EventID)
	default:
		http.Error(w, `{"error":"Not found"}`, http.StatusNotFound)
	}
}

// An agent asks before it acts, and signs and sends what it did.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(serveExample)) // in production: the URL of the service
	defer server.Close()
	service, err := client.New(client.Config{BaseURL: server.URL, Token: "apl_live_example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	organization, err := id.ParseOrganization("8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11")
	if err != nil {
		fmt.Println(err)
		return
	}
	who := client.Identity{Organization: organization, Agent: "agt_support", Key: "key_1"}
	signer, err := client.NewSigner(who, make([]byte, edkey.SeedSize)) // a seed for examples only
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, order := context.Background(), map[string]any{"order": "A-1009"}
	decision, err := service.Evaluate(ctx, client.Question{
		Organization: organization, Agent: who.Agent, Tool: "acme.orders.read", Payload: order,
	})
	if err != nil || decision.Decision != id.Allow {
		fmt.Println("not allowed:", decision.Reason, err)
		return
	}
	fmt.Println(decision.Decision, "by", decision.RuleID)

	// Read the order here.
	envelope, err := signer.SignEvent(client.Event{EventID: "evt_1", ActionKind: "tool_call", Tool: "acme.orders.read", Payload: order})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := service.Send(ctx, envelope)
	if err != nil {
		fmt.Println(err) // keep the envelope and send the same bytes again
		return
	}
	fmt.Println(result.EventID, result.Status, result.Sequence)

	_, err = service.Fetch(ctx, "/v1/unknown")
	var refused *client.Error
	fmt.Println(errors.As(err, &refused), refused.Status, client.IsRefused(err))
	// Output:
	// allow by reads
	// evt_1 created 7
	// true 404 false
}
