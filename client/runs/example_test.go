package runs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/runs"
	"github.com/agentledger/agentledger/id"
)

// serveExample stands in for a service that allows every step.
func serveExample(w http.ResponseWriter, r *http.Request) {
	switch path := strings.TrimPrefix(r.URL.Path, "/v1/ingest/workflows/runs"); path {
	case "":
		fmt.Fprint(w, `{"run_id":"run_1","trace_id":"run_1","status":"running","agent_id":"agt_bridge",
			"event":{"event_id":"evt_0","sequence_num":1,"status":"created"}}`)
	case "/run_1/steps":
		var steps []runs.Step
		json.NewDecoder(r.Body).Decode(&steps)
		fmt.Fprint(w, strings.TrimSuffix("["+strings.Repeat(`{"decision":"allow","event":{"event_id":"evt_1","status":"created"}},`, len(steps)), ",")+"]")
	default:
		fmt.Fprintf(w, `{"status":"succeeded","steps_recorded":2,"events_recorded":3,"run_root":%q}`, id.Hash{1})
	}
}

// A job without a signing key reports its steps. A step that succeeded is not repeated.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(serveExample)) // in production: the URL of the service
	defer server.Close()
	service, err := client.New(client.Config{BaseURL: server.URL, Token: "apl_live_example"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	run, err := runs.Start(ctx, service, runs.Options{Workflow: runs.Workflow{Name: "import"}, External: "import-2026-11-20"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		done, err := run.Do(ctx, runs.Step{Key: "orders.csv", Tool: "acme.files.import"}, func(context.Context) error {
			fmt.Println("copying orders.csv")
			return nil
		})
		fmt.Println("done:", done, err)
	}
	result, err := run.Complete(ctx, runs.Ending{Status: runs.Succeeded})
	fmt.Println(result.Status, result.Recorded, err)
	// Output:
	// copying orders.csv
	// done: true <nil>
	// done: true <nil>
	// succeeded 2 <nil>
}
