package console_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
)

// run starts a run with a number of steps.
func (w *world) run(tenant id.Tenant, external string, steps int) workflow.Run {
	w.t.Helper()
	w.Pass(time.Millisecond)
	planned := 5
	run, _, _, err := w.workflows.Start(w.t.Context(), tenant, workflow.Beginning{
		Workflow: workflow.Flow{Name: "invoices", Version: "3"}, External: external, Planned: &planned, IngestKeyID: "ik_1",
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for n := range steps {
		s := workflow.Step{Key: fmt.Sprint("s", n), Attempt: 1, Tool: "acme.mail.send", Status: "succeeded"}
		if _, err := w.workflows.Record(w.t.Context(), tenant, "ik_1", run.ID, []workflow.Step{s}); err != nil {
			w.t.Fatal(err)
		}
	}
	return run
}

// names returns a member of each item of a list.
func names(body map[string]any, list, member string) (all []any) {
	for _, item := range body[list].([]any) {
		all = append(all, item.(map[string]any)[member])
	}
	return all
}

func TestRuns(t *testing.T) {
	w := newWorld(t)
	var runs []workflow.Run
	for n := range 3 {
		runs = append(runs, w.run(red, fmt.Sprint("exec-", n), n))
	}
	other := w.run(blue, "exec-0", 1)
	if _, err := w.workflows.Complete(t.Context(), red, "ik_1", runs[1].ID, workflow.Ending{Status: workflow.Failed, Error: "no paper"}); err != nil {
		t.Fatal(err)
	}
	bridge := string(runs[0].Agent)
	for path, want := range map[string]string{
		"/runs":                                           "[exec-2 exec-1 exec-0]",
		"/runs?status=running":                            "[exec-2 exec-0]",
		"/runs?status=failed":                             "[exec-1]",
		"/runs?status=abandoned":                          "[]",
		"/runs?agent_id=" + bridge:                        "[exec-2 exec-1 exec-0]",
		"/runs?agent_id=" + string(other.Agent):           "[]",
		"/runs?after=" + string(runs[1].ID):               "[exec-0]",
		"/runs?limit=2&status=running&agent_id=" + bridge: "[exec-2 exec-0]",
	} {
		for _, who := range []string{"red-member", "red-approver", "red-owner"} {
			if got := fmt.Sprint(names(w.call(200, "GET", path, "", as(who)), "runs", "external_run_id")); got != want {
				t.Errorf("%s as %s: got %s, want %s", path, who, got, want)
			}
		}
	}
	first := w.call(200, "GET", "/runs?limit=2", "")
	if got := fmt.Sprint(names(first, "runs", "external_run_id")); got != "[exec-2 exec-1]" || first["next"] != string(runs[1].ID) {
		t.Errorf("a page: got %s, next %v", got, first["next"])
	}
	if got := fmt.Sprint(names(w.call(200, "GET", "/runs", "", as("blue-member")), "runs", "run_id")); got != "["+string(other.ID)+"]" {
		t.Errorf("blue: got %s", got)
	}
	w.refuses("another organization's", w.request("GET", "/runs/"+string(runs[0].ID), "", as("blue-owner")), 404, "Not found")
	w.refuses("an unknown status", w.request("GET", "/runs?status=open", ""), 422, "status must be running, succeeded, failed, aborted or abandoned")
	w.refuses("a bad limit", w.request("GET", "/runs?limit=0", ""), 422, "limit must be from 1 to 1000")
	w.refuses("a bad page", w.request("GET", "/runs/"+string(runs[0].ID)+"?after=x", ""), 422, "after must be a whole number from 0 to 2147483647")
}

// A run, page by page, with the results of its steps.
func TestOneRun(t *testing.T) {
	w := newWorld(t)
	run := w.run(red, "exec-1", 3)
	path := "/runs/" + string(run.ID)
	page := w.call(200, "GET", path+"?limit=2", "", as("red-member"))
	step := page["events"].([]any)[1].(map[string]any)
	if page["next"] != 2.0 || step["step_key"] != "s0" || step["tool_name"] != "acme.mail.send" || step["decision"] != "allow" || step["attempt"] != 1.0 {
		t.Errorf("the first page: got %v", page)
	}
	delete(page, "events")
	delete(page, "next")
	now := id.InstantOf(w.Clock()).String()
	equal(t, "running", page, `{"run_id":"`+string(run.ID)+`","status":"running","agent_id":"`+string(run.Agent)+`","trace_id":"`+string(run.ID)+`","ingest_key_id":"ik_1",
		"workflow":{"name":"invoices","version":"3","tool":null},"external_run_id":"exec-1","input_digest":null,"output_digest":null,"error":null,
		"started_at":"`+now+`","last_at":"`+now+`","ended_at":null,"steps_recorded":3,"steps_planned":5,"gap":null,"events_recorded":4,"run_root":null}`)
	ended, err := w.workflows.Complete(t.Context(), red, "ik_1", run.ID, workflow.Ending{Status: workflow.Aborted, Error: "no paper"})
	if err != nil {
		t.Fatal(err)
	}
	last := w.call(200, "GET", path+"?after=3", "")
	if got := fmt.Sprint(names(last, "events", "action_kind")); got != "[tool_call ledger_run]" || last["next"] != nil {
		t.Errorf("the last page: got %s, next %v", got, last["next"])
	}
	if _, there := last["events"].([]any)[1].(map[string]any)["step_key"]; there {
		t.Error("the end has members of a step")
	}
	if last["status"] != "aborted" || last["error"] != "no paper" || last["gap"] != 2.0 || last["run_root"] != ended.Result.Root.String() || last["ended_at"] != now {
		t.Errorf("ended: got %v", last)
	}
}
