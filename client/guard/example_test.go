package guard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

// serveExample stands in for a service whose policy denies deletions.
func serveExample(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e, err := event.Parse(body, event.Options{MaxBytes: event.DefaultMaxBytes})
	if err != nil {
		http.Error(w, `{"error":"Invalid event"}`, http.StatusUnprocessableEntity)
		return
	}
	decision := ""
	if strings.Contains(string(e.Tool), "delete") {
		decision = `,"policy_decision":"deny","policy_id":"shop","rule_id":"r","reason":"Deletion is not allowed"`
	}
	fmt.Fprintf(w, `{"event_id":%q,"status":"created","sequence_num":1,"chain_valid":true%s}`, e.EventID, decision)
}

func newGuard(url, folder string) (*guard.Guard, error) {
	service, err := client.New(client.Config{BaseURL: url, Token: "apl_live_example"})
	if err != nil {
		return nil, err
	}
	who := client.Identity{Organization: id.Organization{1}, Agent: "agt_support", Key: "key_1"}
	signer, err := client.NewSigner(who, make([]byte, edkey.SeedSize)) // a seed for examples only
	if err != nil {
		return nil, err
	}
	journal, err := guard.OpenJournal(folder, guard.JournalOptions{})
	if err != nil {
		return nil, err
	}
	return guard.New(guard.Config{Client: service, Signer: signer, Journal: journal, Principal: "ops@acme.example"})
}

// An action with a key runs at most once; a denied action does not run.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(serveExample)) // in life: the URL of the service
	defer server.Close()
	folder, err := os.MkdirTemp("", "journal-") // in life: a folder that outlives the agent
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	actions, err := newGuard(server.URL, folder)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer actions.Journal.Close()

	refund := guard.Action{Key: "refund-A-1009", Tool: "acme.payments.refund", Payload: map[string]any{"amount_usd": 84.5}}
	for range 2 {
		outcome, err := actions.Run(context.Background(), refund, func(context.Context, guard.Permit) (any, error) {
			fmt.Println("refunding")
			return map[string]any{"refunded": true}, nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(outcome.Result), "repeated:", outcome.Repeated)
	}

	var denied *client.DeniedError
	_, err = actions.Run(context.Background(), guard.Action{Tool: "acme.customers.delete"}, nil)
	fmt.Println(errors.As(err, &denied), err)
	// Output:
	// refunding
	// {"refunded":true} repeated: false
	// {"refunded":true} repeated: true
	// true run action: the action is not allowed: Deletion is not allowed
}
