package client_test

import (
	"context"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// An agent asks before it acts, and says what it did.
func Example() {
	organization, err := id.ParseOrganization(os.Getenv("APS_ORG"))
	if err != nil {
		fmt.Println(err)
		return
	}
	who := client.Identity{Organization: organization, Agent: "agt_support", Key: "key_1"}
	signer, err := client.ParseSigner(who, os.Getenv("AGENT_KEY"))
	if err != nil {
		fmt.Println(err)
		return
	}
	service, err := client.New(client.Config{BaseURL: os.Getenv("APS_URL"), Token: os.Getenv("APS_TOKEN")})
	if err != nil {
		fmt.Println(err)
		return
	}
	refund := map[string]any{"amount_usd": 42.5, "currency": "USD"}
	decision, err := service.Evaluate(context.Background(), client.Question{Organization: organization, Agent: who.Agent, Tool: "shop.refunds.create", Payload: refund})
	if err != nil || decision.Decision != id.Allow {
		fmt.Println("not refunded:", decision.Reason, err)
		return
	}
	// Refund here.
	envelope, err := signer.SignEvent(client.Event{ActionKind: "tool_call", Tool: "shop.refunds.create", Payload: refund})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := service.Send(context.Background(), envelope)
	if err != nil {
		fmt.Println(err) // keep the envelope and send the same bytes again
		return
	}
	fmt.Println(result.Status, result.Sequence)
}
