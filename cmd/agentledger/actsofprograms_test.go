package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/client/runs"
	"github.com/agentledger/agentledger/id"
)

const programsPolicy = `{"policy_id":"programs","name":"Programs","rules":[
	{"rule_id":"denied","tool":"denied.**","decision":"deny","reason":"No"},
	{"rule_id":"gateway","tool":"mcp.denied.**","decision":"deny","reason":"No"},
	{"rule_id":"customers","tool":"acme.customers.**","decision":"deny","reason":"No"}]}`

// Programs that do an act, an act that fails and an act that is denied, with the clients for TypeScript and Python.
const (
	actsInTypeScript = `import { clientFromEnvironment } from "../../clients/typescript/src/node.js";
const client = clientFromEnvironment();
for (const [tool, act] of [["typescript.call", () => 1], ["typescript.call", () => { throw new Error("no"); }], ["denied.typescript", () => 1]])
  await client.run({ tool, payload: {} }, act).catch(() => {});
await client.close();`
	actsInPython = `import sys
sys.path.insert(0, "../../clients/python/src")
from agentledger import Client
with Client() as client:
    for tool, act in [("python.call", lambda permit: 1), ("python.call", lambda permit: 1 // 0), ("denied.python", lambda permit: 1)]:
        try:
            client.act(tool, {}, act)
        except Exception:
            pass`
)

// What hooks, aps wrap, the gateway, runs and the three clients record is recognized as acts with their outcomes: one
// act for each, and none for its result.
func TestActsOfPrograms(t *testing.T) {
	p := startProcess(t, t.TempDir())
	org, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	r, other := newRefunder(t, p, org), newRefunder(t, p, blue)
	if err := r.person.callConsole(t.Context(), "POST", "/policies", rawJSON(programsPolicy), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.person.callConsole(t.Context(), "POST", "/policies/programs/activate", struct{}{}, nil); err != nil {
		t.Fatal(err)
	}
	a := newActor(t, p.main, org, t.TempDir())
	actsOfHooks(a)
	for _, c := range []struct{ tool, script string }{{"wrap.run", "true"}, {"wrap.run", "false"}, {"denied.wrap", "true"}} {
		a.run("", "wrap", "--tool", c.tool, "--", c.script)
	}
	for _, server := range []string{"shop", "denied"} {
		s := a.gateway(server)
		for _, item := range []string{"tea", "nothing"} {
			if _, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "buy", Arguments: map[string]any{"item": item}}); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
	}
	nightly(t, p, org)
	actsInGo(t, r)
	for _, command := range []*exec.Cmd{
		exec.Command("node", "--no-warnings", "--input-type=module", "--eval", actsInTypeScript),
		exec.Command("../../clients/python/interpreter", "-B", "-c", actsInPython),
	} {
		command.Env = append(os.Environ(), a.environment...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command.Path, err, out)
		}
	}

	want := map[string][]string{
		"hook.Bash": {"done", "failed", "unknown"}, "denied.Bash": {"denied"},
		"wrap.run": {"done", "failed"}, "denied.wrap": {"denied"},
		"mcp.shop.buy": {"done", "failed"}, "mcp.denied.buy": {"denied", "denied"},
		"acme.reports.write": {"done"}, "acme.customers.purge": {"denied"},
		"runs.step": {"cancelled", "done", "failed", "open"}, "denied.step": {"denied"},
		"go.call": {"done", "failed"}, "denied.go": {"denied"},
		"typescript.call": {"done", "failed"}, "denied.typescript": {"denied"},
		"python.call": {"done", "failed"}, "denied.python": {"denied"},
	}
	var got map[string][]string
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) { // results may arrive after their programs ended
		if got = outcomesByTool(t, r); maps.EqualFunc(got, want, slices.Equal) || time.Now().After(deadline) {
			break
		}
	}
	for tool := range want {
		if !slices.Equal(got[tool], want[tool]) {
			t.Errorf("%s: got %q, want %q", tool, got[tool], want[tool])
		}
		delete(got, tool)
	}
	if len(got) > 0 {
		t.Errorf("got also %q", got)
	}
	if theirs := outcomesByTool(t, other); len(theirs) > 0 {
		t.Errorf("the other organization has %q", theirs)
	}
}

// outcomesByTool returns the outcomes of all acts of an organization.
func outcomesByTool(t *testing.T, r *refunder) map[string][]string {
	t.Helper()
	var page struct {
		Acts []struct {
			Tool    string `json:"tool_name"`
			Outcome string `json:"outcome"`
		} `json:"acts"`
	}
	if err := r.person.callConsole(t.Context(), "GET", "/acts?limit=1000", nil, &page); err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]string)
	for _, a := range page.Acts {
		found[a.Tool] = append(found[a.Tool], a.Outcome)
	}
	for _, outcomes := range found {
		slices.Sort(outcomes)
	}
	return found
}

// actsOfHooks makes calls of a session, the last of which is interrupted.
func actsOfHooks(a *actor) {
	a.t.Helper()
	for n, c := range []struct{ prefix, response string }{{"hook.", `"ok"`}, {"hook.", `{"is_error":true}`}, {"denied.", ""}, {"hook.", ""}} {
		call := fmt.Sprintf(`{"session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t%d"`, n)
		if out, exit := a.run(call+"}", "hook", "pre", "--prefix", c.prefix); (exit == 0) != (c.prefix == "hook.") {
			a.t.Errorf("hook %d: status %d, %s", n, exit, out)
		}
		if c.response != "" {
			if out, exit := a.run(call+`,"tool_response":`+c.response+"}", "hook", "post"); exit != 0 {
				a.t.Errorf("hook %d: status %d, %s", n, exit, out)
			}
		}
	}
	if out, exit := a.run(`{"session_id":"s"}`, "hook", "close"); exit != 0 {
		a.t.Errorf("close: status %d, %s", exit, out)
	}
}

// actsInGo makes calls with package guard, and steps of a run with package runs.
func actsInGo(t *testing.T, r *refunder) {
	t.Helper()
	journal, err := guard.OpenJournal(t.TempDir(), guard.JournalOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := guard.New(guard.Config{Client: r.client, Signer: r.signer, Journal: journal, Principal: "ops"})
	if err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no")
	for _, c := range []struct {
		tool id.Tool
		err  error
	}{{"go.call", nil}, {"go.call", failed}, {"denied.go", nil}} {
		_, err := g.Run(t.Context(), guard.Action{Tool: c.tool}, func(context.Context, guard.Permit) (any, error) { return nil, c.err })
		if denied := new(client.DeniedError); !errors.Is(err, c.err) && !errors.As(err, &denied) {
			t.Error(err)
		}
	}
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := runs.Start(t.Context(), r.client, runs.Options{Workflow: runs.Workflow{Name: "w"}})
	if err != nil {
		t.Fatal(err)
	}
	for key, c := range map[string]struct {
		tool id.Tool
		err  error
	}{"a": {"runs.step", nil}, "b": {"runs.step", failed}, "c": {"denied.step", nil}, "d": {"", nil}} {
		_, err := run.Do(t.Context(), runs.Step{Key: key, Tool: c.tool}, func(context.Context) error { return c.err })
		if denied := new(client.DeniedError); !errors.Is(err, c.err) && !errors.As(err, &denied) {
			t.Error(err)
		}
	}
	if _, err := run.Report(t.Context(), runs.Step{Key: "e", Tool: "runs.step", Status: "started"}, runs.Step{Key: "f", Tool: "runs.step", Status: "skipped"}); err != nil {
		t.Fatal(err)
	}
}
