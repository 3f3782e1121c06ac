package workflow_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// overwrite changes a record directly in the store.
func (w *world) overwrite(tenant id.Tenant, kind storage.Kind, key string, value []byte) {
	w.t.Helper()
	change := storage.Change{Kind: kind, Key: key, Value: value, If: storage.AnyVersion}
	if err := w.Store.Write(w.t.Context(), tenant, []storage.Change{change}); err != nil {
		w.t.Fatal(err)
	}
}

const rules = `[
	{"rule_id":"drop","tool":"acme.drop","decision":"deny","reason":"never"},
	{"rule_id":"ask","tool":"acme.ask","decision":"allow_with_obligation","reason":"ask first"},
	{"rule_id":"big","tool":"acme.pay","when":"payload.amount > 100.0","decision":"deny","reason":"too much at once"},
	{"rule_id":"sum","tool":"acme.pay","decision":"deny","reason":"too much in an hour","limit":{"limit_id":"hour","sum":"amount","by":"agent","window_seconds":3600,"max":150}}]`

func pay(key string, amount int) workflow.Step {
	return workflow.Step{Key: key, Attempt: 1, Tool: "acme.pay", Status: "succeeded", Payload: fmt.Appendf(nil, `{"amount":%d}`, amount)}
}

// Steps are judged like events, each at its index. A denial is recorded too.
func TestPolicy(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "p1", rules)
	run := w.start(red, beginning(""))
	steps := []workflow.Step{
		{Key: "drop", Attempt: 1, Tool: "acme.drop", Status: "skipped"}, {Key: "ask", Attempt: 1, Tool: "acme.ask", Status: "started"},
		pay("one", 90), pay("big", 101), pay("two", 60), pay("three", 1), step("silent"),
	}
	want := []string{
		"deny drop never", "allow_with_obligation ask ask first", "allow default No rule matches; the policy's default is allow.", "deny big too much at once",
		"allow default No rule matches; the policy's default is allow.", "deny sum too much in an hour", "allow  The step names no tool, so no policy was asked.",
	}
	recorded := w.record(red, run.ID, steps...)
	again := w.record(red, run.ID, steps...)
	for i := range want {
		for name, r := range map[string]workflow.Recorded{"recorded": recorded[i], "again": again[i]} {
			if got := fmt.Sprintf("%s %s %s", r.Policy.Effective, r.Policy.RuleID, r.Reason); got != want[i] {
				t.Errorf("%s %s: got %q, want %q", name, steps[i].Key, got, want[i])
			}
		}
		if a, b := recorded[i].Placed, again[i].Placed; !b.Replayed || a.Index != b.Index || a.Hash != b.Hash || a.Event != b.Event {
			t.Errorf("%s: got %+v, then %+v", steps[i].Key, a, b)
		}
	}
	if got := w.State(t, red).Size(); got != 11 { // policy, agent, key, start and seven steps
		t.Errorf("size: got %d, want 11", got)
	}
	w.activate(red, "p2", `[{"rule_id":"closed","tool":"**","decision":"deny","reason":"closed"}]`)
	if got := w.record(red, run.ID, pay("four", 1))[0]; got.Policy.RuleID != "closed" || got.Policy.PolicyID != "p2" {
		t.Errorf("under another policy: got %+v", got.Policy)
	}
	if got := w.record(red, run.ID, steps[4])[0]; got.Policy.PolicyID != "p1" || got.Policy.Effective != id.Allow {
		t.Errorf("a step of before, again: got %+v", got.Policy)
	}
}

func TestRecordRefuses(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	w.record(red, run.ID, step("known"))
	with := func(change func(*workflow.Step)) []workflow.Step {
		s := step("s")
		change(&s)
		return []workflow.Step{s}
	}
	const key, token = "step_key must have 1 to 256 characters, none of them a control character", " must match [a-z][a-z0-9_]{0,63}"
	for name, c := range map[string]struct {
		steps   []workflow.Step
		message string
	}{
		"no key":             {with(func(s *workflow.Step) { s.Key = "" }), key},
		"a long key":         {with(func(s *workflow.Step) { s.Key = strings.Repeat("x", 257) }), key},
		"attempt 0":          {with(func(s *workflow.Step) { s.Attempt = 0 }), "attempt must be a whole number from 1 to 1000000"},
		"a kind":             {with(func(s *workflow.Step) { s.Kind = "Tool" }), "kind" + token},
		"the server's kind":  {with(func(s *workflow.Step) { s.Kind = "ledger_run" }), "kind must not begin with ledger_, which is reserved for the server"},
		"a tool":             {with(func(s *workflow.Step) { s.Tool = "a..b" }), "tool_name must be segments of [A-Za-z0-9_:/-]+ with dots between them, at most 256 characters"},
		"a payload":          {with(func(s *workflow.Step) { s.Payload = []byte("[]") }), "payload must be an object"},
		"no status":          {with(func(s *workflow.Step) { s.Status = "" }), "status" + token},
		"a time":             {with(func(s *workflow.Step) { s.StartedAt = "now" }), "started_at must be a UTC time like 2026-01-31T12:00:00.000Z"},
		"an end":             {with(func(s *workflow.Step) { s.EndedAt = "2026-02-30T00:00:00Z" }), "ended_at must be a UTC time like 2026-01-31T12:00:00.000Z"},
		"backwards":          {with(func(s *workflow.Step) { s.StartedAt, s.EndedAt = "2026-01-31T12:00:01Z", "2026-01-31T12:00:00Z" }), "ended_at must not be before started_at"},
		"another payload":    {with(func(s *workflow.Step) { s.Key, s.Payload = "known", []byte(`{"n":2}`) }), "step_key and attempt were used with another step"},
		"another status":     {with(func(s *workflow.Step) { s.Key, s.Status = "known", "failed" }), "step_key and attempt were used with another step"},
		"another kind":       {with(func(s *workflow.Step) { s.Key, s.Kind = "known", "result" }), "step_key and attempt were used with another step"},
		"in a list":          {append(with(func(*workflow.Step) {}), with(func(s *workflow.Step) { s.Key, s.Tool = "known", "t" })...), "[1].step_key and attempt were used with another step"},
		"malformed in it":    {append(with(func(*workflow.Step) {}), with(func(s *workflow.Step) { s.Status = "?" })...), "[1].status" + token},
		"twice in it":        {append(with(func(*workflow.Step) {}), with(func(*workflow.Step) {})...), "[1].step_key and attempt are already used by an earlier step in the list"},
		"twice, differently": {append(with(func(*workflow.Step) {}), with(func(s *workflow.Step) { s.Payload = nil })...), "[1].step_key and attempt are already used by an earlier step in the list"},
	} {
		_, err := w.workflows.Record(t.Context(), red, "ik_1", run.ID, c.steps)
		wantFault(t, name, err, fault.Invalid, c.message)
	}
	_, err := w.workflows.Record(t.Context(), red, "ik_1", run.ID, with(func(s *workflow.Step) { s.Payload = []byte(`{"x":"` + strings.Repeat("x", 4096) + `"}`) }))
	wantFault(t, "a large one", err, fault.TooLarge, "The envelope is larger than 4096 bytes")
	if got := len(w.steps(red)); got != 1 {
		t.Errorf("got %d steps, want 1: a list lands whole or not at all", got)
	}
	w.orgs.set(false, 0)
	_, err = w.workflows.Record(t.Context(), red, "ik_1", run.ID, with(func(*workflow.Step) {}))
	wantFault(t, "inactive", err, fault.Forbidden, "The organization is inactive")
}

// A run exists only for the caller that started it.
func TestRunIsOfItsKey(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning("ext"))
	w.start(blue, beginning("ext"))
	w.record(red, run.ID, step("a"))
	for name, who := range map[string]struct {
		tenant id.Tenant
		key    string
	}{"another key": {red, "ik_2"}, "another organization": {blue, "ik_1"}} {
		for _, node := range []*workflow.Workflows{w.workflows, w.node()} { // one with the run cached and one without
			_, err := node.Record(t.Context(), who.tenant, who.key, run.ID, []workflow.Step{step("b")})
			wantFault(t, name+": step", err, fault.NotFound, "Not found")
			_, err = node.Record(t.Context(), who.tenant, who.key, run.ID, []workflow.Step{step("a")})
			wantFault(t, name+": known step", err, fault.NotFound, "Not found")
			_, err = node.Complete(t.Context(), who.tenant, who.key, run.ID, workflow.Ending{Status: workflow.Succeeded})
			wantFault(t, name+": complete", err, fault.NotFound, "Not found")
			_, _, _, err = node.Get(t.Context(), who.tenant, who.key, run.ID, 0, 10)
			wantFault(t, name+": get", err, fault.NotFound, "Not found")
		}
	}
	if got, _ := w.get(red, run.ID); got.Status != workflow.Running || got.Result.Recorded != 1 {
		t.Errorf("got %+v", got)
	}
	if got := len(w.steps(blue)); got != 0 {
		t.Errorf("blue has %d steps", got)
	}
}

func TestStepAfterTheEnd(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	w.record(red, run.ID, step("a"))
	other := w.node() // caches nothing, or something stale
	if _, err := other.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("b")}); err != nil {
		t.Fatal(err)
	}
	w.complete(red, run.ID)
	for _, node := range []*workflow.Workflows{w.workflows, other} {
		_, err := node.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("c")})
		wantFault(t, "a step", err, fault.Conflict, "The run is succeeded")
		_, err = node.Complete(t.Context(), red, "ik_1", run.ID, workflow.Ending{Status: workflow.Failed})
		wantFault(t, "another ending", err, fault.Conflict, "The run is succeeded")
		_, err = node.Complete(t.Context(), red, "ik_1", run.ID, workflow.Ending{Status: workflow.Succeeded, Error: "no"})
		wantFault(t, "the same with more", err, fault.Conflict, "The run is succeeded")
		again, err := node.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("a"), step("b")})
		if err != nil || !again[0].Replayed || !again[1].Replayed {
			t.Errorf("known steps: got %+v, %v", again, err)
		}
		ended, err := node.Complete(t.Context(), red, "ik_1", run.ID, workflow.Ending{Status: workflow.Succeeded})
		if err != nil || ended.Result.Recorded != 2 {
			t.Errorf("the same ending: got %+v, %v", ended, err)
		}
	}
	if got := w.runs(red); len(got) != 2 {
		t.Errorf("ledger: got %q", got)
	}
	for name, c := range map[string]struct {
		ending  workflow.Ending
		message string
	}{
		"no status":     {workflow.Ending{}, "status must be succeeded, failed or aborted"},
		"the server's":  {workflow.Ending{Status: workflow.Abandoned}, "status must be succeeded, failed or aborted"},
		"a long error":  {workflow.Ending{Status: workflow.Failed, Error: strings.Repeat("x", 1025)}, "error must have at most 1024 characters"},
		"not yet ended": {workflow.Ending{Status: workflow.Running}, "status must be succeeded, failed or aborted"},
	} {
		_, err := w.workflows.Complete(t.Context(), red, "ik_1", run.ID, c.ending)
		wantFault(t, name, err, fault.Invalid, c.message)
	}
}

// The plan's cap is exact, and a list that would exceed it is rejected as a whole.
func TestCap(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning("")) // the server's own events do not count: start, key and agent
	w.orgs.set(true, 3)
	w.record(red, run.ID, step("1"), step("2"))
	_, err := w.workflows.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("3"), step("4")})
	wantFault(t, "two with room for one", err, fault.PlanLimit, "Monthly event limit reached")
	w.record(red, run.ID, step("3"))
	_, err = w.workflows.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("4")})
	wantFault(t, "one with room for none", err, fault.PlanLimit, "Monthly event limit reached")
	if again := w.record(red, run.ID, step("3")); !again[0].Replayed {
		t.Error("a known step is refused")
	}
	if ended := w.complete(red, run.ID); ended.Result.Recorded != 3 {
		t.Errorf("got %+v", ended.Result)
	}
}

// However an append ends, an acknowledged step is stored once, and a retry is safe.
func TestStepsWhoseAppendFails(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{
		"refused": storagetest.Refused, "request lost": storagetest.RequestLost, "answer lost": storagetest.AnswerLost,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.once(red, failure)
			run, _, _, err := w.workflows.Start(t.Context(), red, beginning("ext"))
			w.Store.Fail(nil)
			again, _, _, err2 := w.workflows.Start(t.Context(), red, beginning("ext"))
			if err2 != nil || err == nil && again.ID != run.ID {
				t.Fatalf("started: %s, %v; again: %s, %v", run.ID, err, again.ID, err2)
			}
			w.once(red, failure)
			first, err := w.workflows.Record(t.Context(), red, "ik_1", again.ID, []workflow.Step{step("a")})
			w.Store.Fail(nil)
			second := w.record(red, again.ID, step("a"))
			if err == nil && (!second[0].Replayed || second[0].Hash != first[0].Hash) {
				t.Errorf("recorded: %+v, again: %+v", first, second)
			}
			w.once(red, failure)
			_, err = w.workflows.Complete(t.Context(), red, "ik_1", again.ID, workflow.Ending{Status: workflow.Succeeded})
			w.Store.Fail(nil)
			ended := w.complete(red, again.ID)
			if ended.Result.Recorded != 1 || ended.Result.Events != 2 {
				t.Errorf("ended (%v): got %+v", err, ended.Result)
			}
			w.checkRoot(red, ended)
			if got := w.runs(red); len(got) != 2 || len(w.steps(red)) != 1 {
				t.Errorf("ledger: got %q, %d steps", got, len(w.steps(red)))
			}
		})
	}
}

func TestStepsAreBounded(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	w.record(red, run.ID, step("a"))
	r, err := w.Store.Get(t.Context(), red, "run", string(run.ID))
	if err != nil {
		t.Fatal(err)
	}
	full := strings.Replace(string(r.Value), `"steps":1`, fmt.Sprintf(`"steps":%d`, workflow.MaxSteps-1), 1)
	w.overwrite(red, "run", string(run.ID), []byte(full))
	node := w.node()
	_, err = node.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("b"), step("c")})
	wantFault(t, "two with room for one", err, fault.Conflict, "A run has at most 10000 steps")
	if _, err := node.Record(t.Context(), red, "ik_1", run.ID, []workflow.Step{step("b")}); err != nil {
		t.Error(err)
	}
	_, err = node.Complete(t.Context(), red, "ik_1", run.ID, workflow.Ending{Status: workflow.Succeeded})
	wantFault(t, "records that are lost", err, fault.Unavailable, "Runs can't be read")
}

// A step of a cached run reads no record.
func TestStepReadsNoRecord(t *testing.T) {
	w := newWorld(t)
	run := w.start(red, beginning(""))
	w.record(red, run.ID, step("first"))
	before := w.records.reads.Load()
	for i := range 10 {
		w.record(red, run.ID, step(fmt.Sprint(i)))
	}
	if got := w.records.reads.Load() - before; got != 0 {
		t.Errorf("10 steps read %d records", got)
	}
	w.Pass(time.Minute)
	if got, _ := w.get(red, run.ID); got.LastAt-got.StartedAt != 0 {
		t.Errorf("heard of %d ms after its start", got.LastAt-got.StartedAt)
	}
}

// Limits count steps that name a tool, whatever their kind, except the result of a recorded step. The other
// organization's steps are not affected.
func TestStepsAndLimits(t *testing.T) {
	w := newWorld(t)
	const rules = `{"policy_id":"p","name":"n","rules":[{"rule_id":"cap","tool":"**","decision":"deny","reason":"no more",
		"limit":{"limit_id":"l","count":true,"by":"organization","window_seconds":3600,"max":2}}]}`
	if _, err := w.book.Create(t.Context(), red, "acc", []byte(rules)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.book.Activate(t.Context(), red, "acc", "p"); err != nil {
		t.Fatal(err)
	}
	run, other := w.start(red, beginning("")), w.start(blue, beginning(""))
	tool := func(key, kind, payload string) workflow.Step {
		return workflow.Step{Key: key, Attempt: 1, Status: "started", Tool: "acme.pay", Kind: kind, Payload: []byte(payload)}
	}
	first := w.record(red, run.ID, tool("first", "", `{}`))[0]
	result := func(of id.Event) string { return `{"phase":"result","parent_event_id":"` + string(of) + `"}` }
	blues := w.record(blue, other.ID, tool("first", "", `{}`))[0]
	for _, c := range []struct {
		step   workflow.Step
		want   string
		reason string
	}{
		{tool("told", "result", result(first.Event)), "allow " + string(first.Event), "The step is the result of " + string(first.Event) + " and takes its decision."},
		{tool("second", "made_up", `{}`), "allow ", "No rule matches; the policy's default is allow."},
		{tool("third", "made_up", `{}`), "deny ", "no more"},
		{tool("a result of nothing", "result", result("nowhere")), "deny ", "no more"},
		{tool("a result of the neighbour's", "result", result(blues.Event)), "deny ", "no more"},
		{step("without a tool"), "allow ", "The step names no tool, so no policy was asked."},
	} {
		got := w.record(red, run.ID, c.step)[0]
		if decision := got.Policy.Effective.String() + " " + string(got.Policy.Intent); decision != c.want || got.Reason != c.reason {
			t.Errorf("%s: got %s, %q, want %s, %q", c.step.Key, decision, got.Reason, c.want, c.reason)
		}
		if again := w.record(red, run.ID, c.step)[0]; !again.Replayed || again.Reason != c.reason {
			t.Errorf("%s again: got %+v", c.step.Key, again)
		}
	}
	w.Audit(t, red)
}

// In every state, a run exists only for the ingest key that started it. Requests of others cause no entry in either
// ledger.
func TestStrangersOfARunWriteNothing(t *testing.T) {
	for state, into := range map[string]func(*world, workflow.Run){
		"running":   func(*world, workflow.Run) {},
		"ended":     func(w *world, r workflow.Run) { w.complete(red, r.ID) },
		"silent":    func(w *world, _ workflow.Run) { w.Pass(2 * time.Hour) },
		"abandoned": func(w *world, _ workflow.Run) { w.Pass(2 * time.Hour); _ = w.workflows.Sweep(w.t.Context()) },
	} {
		w := newWorld(t)
		run := w.start(red, beginning("x"))
		w.record(red, run.ID, step("a"))
		w.start(blue, beginning("x"))
		into(w, run)
		before := [2]id.Index{w.State(t, red).Size(), w.State(t, blue).Size()}
		for _, who := range []struct {
			tenant id.Tenant
			key    string
		}{{red, "ik_2"}, {blue, "ik_1"}} {
			_, _, _, got := w.workflows.Get(t.Context(), who.tenant, who.key, run.ID, 0, 10)
			_, known := w.workflows.Record(t.Context(), who.tenant, who.key, run.ID, []workflow.Step{step("a")})
			_, recorded := w.workflows.Record(t.Context(), who.tenant, who.key, run.ID, []workflow.Step{step("b")})
			_, completed := w.workflows.Complete(t.Context(), who.tenant, who.key, run.ID, workflow.Ending{Status: workflow.Succeeded})
			for name, err := range map[string]error{"get": got, "a known step": known, "a step": recorded, "complete": completed} {
				if !fault.Is(err, fault.NotFound) {
					t.Errorf("%s: %s by %v: got %v", state, name, who, err)
				}
			}
		}
		if got := [2]id.Index{w.State(t, red).Size(), w.State(t, blue).Size()}; got != before {
			t.Errorf("%s: got sizes %v, want %v", state, got, before)
		}
		for _, decision := range w.Audit(t, red) {
			if strings.Contains(decision.Payload, `"transition":"abandoned"`) && decision.Principal != "operator" || decision.Principal == "ik_2" {
				t.Errorf("%s: got %+v", state, decision)
			}
		}
	}
}
