package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
)

// Waiting times are measured from the request to the deciding vote, for events in the range.
func TestApprovalWaits(t *testing.T) {
	w := newWorld(t)
	first := w.ask(red)
	ask := func(n int) approval.Approval {
		a, _, err := w.approvals.Ask(t.Context(), red, approval.Question{Agent: w.first[red].Agent, Tool: "acme.refund",
			Payload: fmt.Appendf(nil, `{"amount":%d}`, n), Trace: id.Trace("trc-1"), IngestKeyID: first.IngestKeyID})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	vote := func(a approval.Approval, vote, who string) {
		body := fmt.Sprintf(`{"vote":%q,"action_digest":%q}`, vote, a.ActionDigest)
		w.call(200, "POST", "/approvals/"+string(a.ID)+"/votes", body, as(who))
	}
	open := []approval.Approval{first, ask(2), ask(3), ask(4)}
	w.Pass(time.Second)
	vote(open[0], "deny", "red-admin")
	vote(open[1], "approve", "red-admin")
	w.Pass(2 * time.Second)
	vote(open[1], "approve", "red-approver")
	middle := w.State(t, red).Size()
	w.Pass(time.Minute)
	vote(open[2], "deny", "red-approver")
	waits := func(query string) string { return fmt.Sprint(w.call(200, "GET", "/stats"+query, "")["approval_waits"]) }
	for query, want := range map[string]string{
		"":                           "map[complete:true decided:3 p50_ms:3000 p99_ms:63000]",
		fmt.Sprint("?to=", middle):   "map[complete:true decided:2 p50_ms:1000 p99_ms:3000]",
		fmt.Sprint("?from=", middle): "map[complete:true decided:1 p50_ms:63000 p99_ms:63000]",
		"?to=0":                      "map[complete:true decided:0 p50_ms:<nil> p99_ms:<nil>]",
	} {
		if got := waits(query); got != want {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	if got := fmt.Sprint(w.call(200, "GET", "/stats", "", as("blue-owner"))["approval_waits"]); got != "map[complete:true decided:0 p50_ms:<nil> p99_ms:<nil>]" {
		t.Errorf("blue: got %s", got)
	}
}
