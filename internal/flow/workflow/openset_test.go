package workflow_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/storage"
)

// The stored bytes of the set of running runs: its count and pace, the share of an ingest key, and the list.
func TestStoredOpenSet(t *testing.T) {
	w := newWorld(t)
	first, second := w.start(red, beginning("one")), w.start(red, beginning("two"))
	listed := func(status string) string { return `{"status":"` + status + `","agent_id":"BOT"}` }
	w.wantStored("after two starts", map[string]string{
		"run_tally ":        `{"running":2,"started":{"paid":"2026-11-20T12:00:00.720Z"}}`,
		"run_tally ik_1":    `{"running":2}`,
		"run_newest first":  listed("running"),
		"run_newest second": listed("running"),
	}, first, second)
	w.complete(red, first.ID)
	w.wantStored("after one end", map[string]string{
		"run_tally ":        `{"running":1,"started":{"paid":"2026-11-20T12:00:00.720Z"}}`,
		"run_tally ik_1":    `{"running":1}`,
		"run_newest first":  listed("succeeded"),
		"run_newest second": listed("running"),
	}, first, second)
}

func (w *world) wantStored(when string, want map[string]string, first, second workflow.Run) {
	w.t.Helper()
	got := make(map[string]string)
	for _, kind := range []storage.Kind{"run_tally", "run_newest"} {
		found, err := w.Engine.Scan(w.t.Context(), red, kind, "", "", 100)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range found {
			key := r.Key
			for name, run := range map[string]workflow.Run{"first": first, "second": second} {
				if key == records.ReverseKey(string(run.ID)) {
					key = name
				}
			}
			got[string(kind)+" "+key] = strings.ReplaceAll(string(r.Value), string(first.Agent), "BOT")
		}
	}
	for name, value := range want {
		if got[name] != value {
			w.t.Errorf("%s: %s: got %s, want %s", when, name, got[name], value)
		}
		delete(got, name)
	}
	for name, value := range got {
		w.t.Errorf("%s: %s was written too: %s", when, name, value)
	}
}
