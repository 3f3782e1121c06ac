// Countersigned is an agent that calls a tool which countersigns: the answer has a receipt under the tool's own key, and the log
// records it. So an auditor does not have to believe the agent that the call was made.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/examples/agent"
	"github.com/agentledger/agentledger/tlog"
)

func main() {
	journal := flag.String("journal", "countersigned-journal", "folder of the agent's memory")
	toolKey := flag.String("tool-key", "countersigned-tool.key", "file with the tool's own key")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	key, err := loadToolKey(*toolKey)
	if err == nil {
		err = runCalls(ctx, key, *journal)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("aps evidence --envelopes --tool 'shop.**' --out countersigned.zip\n"+
		"aps verify countersigned.zip --acts --key \"$LOG_KEY\" --tool-key %s\n", key.Verifier())
}

func runCalls(ctx context.Context, key tlog.SignerKey, journal string) error {
	actions, err := agent.Guard(ctx, journal, "shop.customers.delete")
	if err != nil {
		return err
	}
	defer actions.Journal.Close()
	shop, err := newShop(key)
	if err != nil {
		return err
	}
	api := httptest.NewServer(shop)
	defer api.Close() // in life it runs elsewhere
	for _, asks := range []bool{true, false} {
		// Without Receipts the shop is not told what the agent records, and signs nothing.
		guarded := &http.Client{Transport: &guard.Transport{Guard: actions, Describe: describeRequest, Receipts: asks}}
		r, err := http.NewRequestWithContext(ctx, "POST", api.URL+"/mails", strings.NewReader(`{"to":"ada@shop.example","text":"Your order is on its way"}`))
		if err != nil {
			return err
		}
		answer, err := guarded.Do(r)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		fmt.Printf("POST /mails: %d, with a receipt: %t\n", answer.StatusCode, answer.Header.Get(guard.ReceiptHeader) != "")
	}
	return actions.Flush(ctx)
}

// describeRequest returns the action of a request, as the shop declares it: the tool, and the members of the body.
func describeRequest(_ *http.Request, body []byte) (guard.Action, error) {
	return guard.Action{Tool: "shop.mails.post", Payload: json.RawMessage(body)}, nil
}
