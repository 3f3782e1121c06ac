package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/tlog"
)

func TestRun(t *testing.T) {
	w := newWorld(t)
	planned := 4
	input := id.Hash{7}
	b := beginning("ext-1")
	b.Planned, b.InputDigest, b.Trace = &planned, &input, "trc-1"
	run := w.start(red, b)
	if run.Status != workflow.Running || run.Trace != "trc-1" || !strings.HasPrefix(string(run.Agent), "bridge_") || run.External != "ext-1" {
		t.Errorf("started: got %+v", run)
	}
	first := w.record(red, run.ID, step("read"))[0]
	if first.Replayed || first.Policy.Evaluated || first.Policy.Effective != id.Allow || first.Reason == "" || !first.ChainValid {
		t.Errorf("recorded: got %+v", first)
	}
	second := step("write")
	second.Attempt, second.Status = 2, "failed"
	both := w.record(red, run.ID, step("write"), second)
	if both[1].Index != both[0].Index+1 || both[0].Event == both[1].Event {
		t.Errorf("two attempts: got %+v", both)
	}
	ended := w.complete(red, run.ID)
	if r := ended.Result; ended.Status != workflow.Succeeded || r.Recorded != 2 || r.Events != 4 || *r.Planned != 4 || *r.Gap != 2 {
		t.Errorf("ended: got %+v", ended)
	}
	w.checkRoot(red, ended)

	got, events := w.get(red, run.ID)
	if got.Status != workflow.Succeeded || got.Result.Root != ended.Result.Root || len(events) != 5 {
		t.Fatalf("got %+v, %d events", got, len(events))
	}
	if s := events[3].Step; s == nil || s.Key != "write" || s.Attempt != 2 || s.Status != "failed" || events[0].Step != nil || events[4].Kind != "ledger_run" {
		t.Errorf("events: got %+v", events)
	}
	if want := []string{"started by ik_1", "succeeded by ik_1"}; !slices.Equal(w.runs(red), want) {
		t.Errorf("ledger: got %q, want %q", w.runs(red), want)
	}
	if size := w.State(t, blue).Size(); size != 0 {
		t.Errorf("the other organization's ledger has %d events", size)
	}
}

// checkRoot computes run_root from public data, with a tree built by hand.
func (w *world) checkRoot(tenant id.Tenant, run workflow.Run) {
	w.t.Helper()
	_, events := w.get(tenant, run.ID)
	var level []id.Hash
	for _, e := range events {
		if e.Kind == "ledger_run" && e.Index != events[0].Index {
			continue // the end
		}
		level = append(level, tlog.LeafHash(e.Hash[:]))
	}
	if len(level) != run.Result.Events {
		w.t.Errorf("%d leaves, want %d", len(level), run.Result.Events)
	}
	if got := naiveRoot(level); got != run.Result.Root {
		w.t.Errorf("run_root: got %s, want %s", run.Result.Root, got)
	}
}

// naiveRoot is RFC 6962, section 2.1, verbatim.
func naiveRoot(leaves []id.Hash) id.Hash {
	if len(leaves) == 1 {
		return leaves[0]
	}
	k := 1
	for 2*k < len(leaves) {
		k *= 2
	}
	return tlog.NodeHash(naiveRoot(leaves[:k]), naiveRoot(leaves[k:]))
}

func TestRoot(t *testing.T) {
	var hashes, leaves []id.Hash
	for i := range 70 {
		hashes = append(hashes, id.Hash{byte(i), 1})
		leaves = append(leaves, tlog.LeafHash(hashes[i][:]))
		if got, want := workflow.StepsRoot(hashes), naiveRoot(leaves); got != want {
			t.Errorf("%d hashes: got %s, want %s", i+1, got, want)
		}
	}
}

// The contents of a step's record and envelope.
func TestStepInTheLedger(t *testing.T) {
	w := newWorld(t)
	w.enable(red, true)
	b := beginning("")
	b.Agent = w.bot[red]
	run := w.start(red, b)
	s := workflow.Step{
		Key: "pay", Attempt: 3, Tool: "acme.pay", Payload: []byte(`{"amount":7}`), Status: "succeeded",
		StartedAt: "2026-11-20T11:59:58Z", EndedAt: "2026-11-20T11:59:59.5Z",
	}
	recorded := w.record(red, run.ID, s)[0]
	steps := w.steps(red)
	if len(steps) != 1 {
		t.Fatalf("got %d steps", len(steps))
	}
	e := steps[0]
	if e.Index != recorded.Index || e.ID != recorded.Event || e.Agent != w.bot[red] || e.Trace != id.Trace(run.ID) || e.Tool != "acme.pay" || e.ActionKind != "tool_call" {
		t.Errorf("columns: got %+v", e.Event)
	}
	if r := e.record; r.Custody != event.CustodyServer || r.IngestKeyID != "ik_1" || !strings.HasPrefix(string(r.KeyID), "bridge_") || !r.Policy.Evaluated || r.Policy.PolicyID != "none" {
		t.Errorf("record: got %+v", r)
	}
	text := string(e.Event.Envelope)
	for _, part := range []string{
		`"actor_principal":"invoices"`, `"actor_type":"system"`, `"run_id":"` + string(run.ID) + `"`, `"step_key":"pay"`, `"attempt":3`,
		`"step_status":"succeeded"`, `"started_at":"2026-11-20T11:59:58Z"`, `"ended_at":"2026-11-20T11:59:59.5Z"`, `"payload":{"amount":7}`, `"salt":"`,
	} {
		if !strings.Contains(text, part) {
			t.Errorf("envelope: %s is missing in %s", part, text)
		}
	}
}

// The bridge key is generated once, for the first run, and recorded before it.
func TestBridgeIsMadeOnce(t *testing.T) {
	w := newWorld(t)
	before := w.State(t, red).ConfigVersion()
	first, second := w.start(red, beginning("1")), w.start(red, beginning("2"))
	var kinds []string
	for _, statement := range w.Audit(t, red) {
		kinds = append(kinds, statement.Kind)
	}
	if want := []string{"ledger_agent_created", "ledger_key_registered", "ledger_run", "ledger_run"}; !slices.Equal(kinds, want) {
		t.Errorf("got %q, want %q", kinds, want)
	}
	if first.Agent != second.Agent {
		t.Errorf("two bridge agents: %s, %s", first.Agent, second.Agent)
	}
	if after := w.State(t, red).ConfigVersion(); after != before+1 {
		t.Errorf("config version: got %d, want %d: a run changes nothing that events are judged by", after, before+1)
	}
	if other := w.start(blue, beginning("1")); other.Agent == first.Agent {
		t.Error("two organizations share a bridge agent")
	}
}

// A revoked key signs no step; a new one is generated for the next step.
func TestBridgeKeyRevoked(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	w.record(red, run.ID, step("a"))
	keys, err := w.agents.ListKeys(t.Context(), red, run.Agent, "", 10)
	if err != nil || len(keys) != 1 {
		t.Fatalf("got %v, %v", keys, err)
	}
	if _, err := w.agents.RevokeKey(t.Context(), red, "acc_ann", run.Agent, keys[0].ID, agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	w.record(red, run.ID, step("b"))
	steps := w.steps(red)
	if len(steps) != 2 || steps[0].record.KeyID != keys[0].ID || steps[1].record.KeyID == keys[0].ID || steps[0].Agent != steps[1].Agent {
		t.Errorf("got %d steps with keys %s and %s", len(steps), steps[0].record.KeyID, steps[1].record.KeyID)
	}
	w.checkRoot(red, w.complete(red, run.ID))
}

func TestStartAgain(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning("ext"))
	again := func(name string, want workflow.Status) {
		t.Helper()
		got, placed, made, err := w.workflows.Start(t.Context(), red, beginning("ext"))
		if err != nil || made || got.ID != run.ID || got.Status != want || !placed.Replayed || placed.Index != 2 {
			t.Errorf("%s: got %+v, %+v, made %v, %v", name, got, placed, made, err)
		}
	}
	again("running", workflow.Running)
	other := beginning("ext")
	other.IngestKeyID = "ik_2"
	if b := w.start(red, other); b.ID == run.ID {
		t.Error("another ingest key's run of that name: the same run")
	}
	if b := w.start(blue, beginning("ext")); b.ID == run.ID {
		t.Error("another organization's run of that name: the same run")
	}
	if a, b := w.start(red, beginning("")), w.start(red, beginning("")); a.ID == b.ID {
		t.Error("two runs without a name: the same run")
	}
	w.complete(red, run.ID)
	again("ended", workflow.Succeeded)
}

func TestStartRefuses(t *testing.T) {
	w := newWorld(t)
	few, many := -1, 10_001
	for name, c := range map[string]struct {
		change  func(*workflow.Beginning)
		message string
	}{
		"no name":             {func(b *workflow.Beginning) { b.Workflow.Name = "" }, "workflow.name must have 1 to 256 characters, none of them a control character"},
		"a long version":      {func(b *workflow.Beginning) { b.Workflow.Version = strings.Repeat("x", 257) }, "workflow.version must have 1 to 256 characters, none of them a control character"},
		"a control character": {func(b *workflow.Beginning) { b.External = "a\nb" }, "external_run_id must have 1 to 256 characters, none of them a control character"},
		"no agent":            {func(b *workflow.Beginning) { b.Agent = "a b" }, "agent_id must match [A-Za-z0-9._-]{1,128}"},
		"no trace":            {func(b *workflow.Beginning) { b.Trace = ".." }, "trace_id must match [A-Za-z0-9._:-]{1,128}, not . or .."},
		"less than nothing":   {func(b *workflow.Beginning) { b.Planned = &few }, "planned_steps must be a whole number from 0 to 10000"},
		"too many":            {func(b *workflow.Beginning) { b.Planned = &many }, "planned_steps must be a whole number from 0 to 10000"},
		"not enabled":         {func(b *workflow.Beginning) { b.Agent = w.bot[red] }, "The agent is not enabled for the bridge"},
		"blue's":              {func(b *workflow.Beginning) { b.Agent = w.bot[blue] }, "The agent is not enabled for the bridge"},
		"nobody":              {func(b *workflow.Beginning) { b.Agent = "agt_nobody" }, "The agent is not enabled for the bridge"},
	} {
		b := beginning("")
		c.change(&b)
		_, _, _, err := w.workflows.Start(t.Context(), red, b)
		wantFault(t, name, err, fault.Invalid, c.message)
	}
	w.orgs.set(false, 0)
	_, _, _, err := w.workflows.Start(t.Context(), red, beginning(""))
	wantFault(t, "inactive", err, fault.Forbidden, "The organization is inactive")
	if size := w.State(t, red).Size(); size != 0 {
		t.Errorf("size: got %d, want 0", size)
	}
}

// A disabled agent records nothing more, but its run may be ended.
func TestAgentDisabled(t *testing.T) {
	w := newWorld(t)
	w.enable(red, true)
	b := beginning("")
	b.Agent = w.bot[red]
	run := w.start(red, b)
	w.record(red, run.ID, step("a"))
	w.enable(red, false)
	_, err := w.workflows.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("b")})
	wantFault(t, "a step", err, fault.Invalid, "The agent is not enabled for the bridge")
	if again := w.record(red, run.ID, step("a")); !again[0].Replayed {
		t.Error("what was recorded before is not told again")
	}
	no := false
	own := w.start(red, beginning(""))
	if _, err := w.agents.Change(t.Context(), red, "acc_ann", own.Agent, agent.Patch{Bridge: &no}); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = w.workflows.Start(t.Context(), red, beginning(""))
	wantFault(t, "the bridge agent disabled", err, fault.Invalid, "The agent is not enabled for the bridge")
	w.checkRoot(red, w.complete(red, run.ID))
}

func TestRunningRunsAreBounded(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	change := fmt.Appendf(nil, `{"running":%d}`, workflow.MaxRunning)
	w.overwrite(red, "run_tally", "", change)
	_, _, _, err := w.workflows.Start(t.Context(), red, beginning(""))
	wantFault(t, "one too many", err, fault.RateLimited, "10000 runs are running: complete some of them")
	w.start(blue, beginning(""))
	w.complete(red, run.ID)
	w.start(red, beginning(""))
}

// One ingest key cannot use up the capacity: others can still start runs.
func TestRunningRunsOfAKeyAreBounded(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning("known"))
	w.overwrite(red, "run_tally", "ik_1", fmt.Appendf(nil, `{"running":%d}`, workflow.MaxRunningByKey))
	_, _, _, err := w.workflows.Start(t.Context(), red, beginning(""))
	wantFault(t, "one too many of a key", err, fault.RateLimited, "5000 runs of this ingest key are running: complete some of them")
	if _, _, made, err := w.workflows.Start(t.Context(), red, beginning("known")); err != nil || made {
		t.Errorf("a known one: made %v, %v", made, err)
	}
	b := beginning("")
	b.IngestKeyID = "ik_2"
	w.start(red, b)
	w.start(blue, beginning(""))
	w.complete(red, run.ID)
	w.start(red, beginning(""))
}
