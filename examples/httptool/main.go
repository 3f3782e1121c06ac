// Httptool is an agent that uses a plain HTTP API through a guard: each request needs permission before it is made and is
// recorded afterwards, and a request that needs approval carries the grant. The API checks the grant offline.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"strings"

	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/examples/agent"
	"github.com/agentledger/agentledger/id"
)

func main() {
	slug := flag.String("slug", "", "the organization's slug")
	journal := flag.String("journal", "httptool-journal", "folder of the agent's memory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runRequests(ctx, id.Slug(*slug), *journal); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runRequests(ctx context.Context, slug id.Slug, journal string) error {
	actions, err := agent.Guard(ctx, journal, "shop.customers.delete")
	if err != nil {
		return err
	}
	defer actions.Journal.Close()
	api := httptest.NewServer(&shop{service: actions.Client, slug: slug,
		organization: actions.Signer.Identity().Organization})
	defer api.Close() // in life it runs elsewhere
	guarded := &http.Client{Transport: &guard.Transport{Guard: actions, Describe: describeRequest}}
	for _, want := range []struct{ method, path, body string }{
		{"GET", "/orders/A-1009", ""},
		{"DELETE", "/customers/c-77", ""},
		{"POST", "/refunds", `{"order_id":"A-1009","amount_usd":84.5}`},
	} {
		r, err := http.NewRequestWithContext(ctx, want.method, api.URL+want.path, strings.NewReader(want.body))
		if err != nil {
			return err
		}
		if want.method == "POST" {
			r.Header.Set("Idempotency-Key", "refund-A-1009") // is made once, however often this runs
		}
		fmt.Printf("%s %s: %s\n", want.method, want.path, sendAndDescribe(guarded, r))
	}
	return actions.Flush(ctx)
}

// sendAndDescribe makes a request as it would be made without a guard.
func sendAndDescribe(guarded *http.Client, r *http.Request) string {
	answer, err := guarded.Do(r)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, body)
}

// describeRequest returns the action of a request: the tool shop.<resource>.<method>, and
// the payload that the policy's conditions need.
func describeRequest(r *http.Request, body []byte) (guard.Action, error) {
	resource, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	payload := map[string]any{"name": name}
	if len(body) > 0 {
		payload["body"] = json.RawMessage(body)
	}
	return guard.Action{
		Key:  r.Header.Get("Idempotency-Key"),
		Tool: id.Tool("shop." + resource + "." + strings.ToLower(r.Method)), Payload: payload,
	}, nil
}
