// Package agent connects the examples to a service as the agent that the environment names, with the variables of aps.
package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/id"
)

// Guard returns the guard of the agent's actions. Its journal lies in a folder; a restart
// with the same folder continues where the agent was. The caller closes the journal.
//
// It returns an error if the policy does not deny the tool named denied. The examples call it to show a denial, and without a
// policy the call would be made.
func Guard(ctx context.Context, folder string, denied id.Tool) (*guard.Guard, error) {
	service, err := client.New(client.Config{BaseURL: os.Getenv("APS_URL"), Token: os.Getenv("APS_TOKEN")})
	if err != nil {
		return nil, fmt.Errorf("APS_URL, APS_TOKEN: %w", err)
	}
	signer, err := loadSigner()
	if err != nil {
		return nil, err
	}
	decision, err := service.Evaluate(ctx, client.Question{Organization: signer.Identity().Organization, Agent: signer.Identity().Agent, Tool: denied})
	if err != nil {
		return nil, err
	}
	if decision.Decision != id.Deny {
		return nil, fmt.Errorf("nothing would be enforced: no active policy denies %s. Activate examples/shop.json first", denied)
	}
	journal, err := guard.OpenJournal(folder, guard.JournalOptions{})
	if err != nil {
		return nil, err
	}
	actions, err := guard.New(guard.Config{
		Client: service, Signer: signer, Journal: journal,
		OnAsk:   func(a client.Approval) { fmt.Println("waits for people:", a.ID) },
		OnError: func(err error) { fmt.Fprintln(os.Stderr, "not told yet:", err) },
	})
	if err != nil {
		return nil, errors.Join(err, journal.Close())
	}
	return actions, nil
}

func loadSigner() (*client.Signer, error) {
	organization, err := id.ParseOrganization(os.Getenv("APS_ORG"))
	if err != nil {
		return nil, fmt.Errorf("APS_ORG: %w", err)
	}
	key := os.Getenv("APS_KEY")
	if file := os.Getenv("APS_KEY_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("APS_KEY_FILE: %w", err)
		}
		key = string(text)
	}
	who := client.Identity{Organization: organization, Agent: id.Agent(os.Getenv("APS_AGENT")),
		Key: id.Key(os.Getenv("APS_KEY_ID"))}
	signer, err := client.ParseSigner(who, key)
	if err != nil {
		return nil, fmt.Errorf("APS_AGENT, APS_KEY_ID, APS_KEY: %w", err)
	}
	return signer, nil
}
