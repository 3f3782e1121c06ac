package workflow

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/jcs"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/log"
)

// Every accepted step becomes an envelope with the same content, and equal steps have equal digests.
func FuzzStep(f *testing.F) {
	f.Add("pay", 1, "tool_call", "acme.pay", "succeeded", "2026-11-20T11:59:59Z", "2026-11-20T12:00:00.5Z", []byte(`{"amount":7}`))
	f.Add("é\U0001f600\ufffd", 1_000_000, "", "", "x", "", "", []byte(`{}`))
	f.Add("\xff", 0, "Ledger_", ".", "", "now", "", []byte(`[]`))
	f.Add(`"\u0000`, -1, "ledger_run", "a b", "a_9", "", "2026-02-30T00:00:00Z", []byte(`{"b":1,"a":{"c":[null,1e21]}}`))
	bridge := &agent.Bridge{Agent: "bridge_a", Private: edkey.NewPrivate(), Key: agent.Key{ID: "bridge_1"}}
	identity := &log.Identity{Organization: id.Organization{1}}
	r := &record{Agent: "agt_1", Trace: "trc", Workflow: Flow{Name: "flow"}, Nonce: []byte("n")}
	f.Fuzz(func(t *testing.T, key string, attempt int, kind, tool, status, started, ended string, payload []byte) {
		canonical, err := jcs.Canonicalize(payload, jcs.MaxDepth-1)
		if err != nil {
			return
		}
		steps := []Step{{Key: key, Attempt: attempt, Kind: kind, Tool: id.Tool(tool), Payload: canonical, Status: status, StartedAt: started, EndedAt: ended}}
		if checkSteps(steps) != nil {
			return
		}
		s := &steps[0]
		e, err := s.signStep(identity, "run_1", r, bridge, 1, 1<<20)
		if err != nil {
			t.Fatalf("%+v passed the checks: %v", s, err)
		}
		if _, ok := e.Verify(bridge.Private.Public()); !ok || !bytes.Equal(e.Payload, canonical) || e.Tool != s.Tool || e.ActionKind != s.Kind || e.AgentID != "agt_1" {
			t.Errorf("%+v became %s", s, e.Canonical)
		}
		if _, err := event.Parse(e.Canonical, event.Options{}); err == nil {
			t.Error("a client could send it")
		}
		want := string(jcs.AppendString([]byte(`"step_key":`), key))
		if !strings.Contains(string(e.Canonical), want) {
			t.Errorf("%s is missing in %s", want, e.Canonical)
		}
		one, err := s.digestStep()
		if err != nil {
			t.Fatal(err)
		}
		other := *s
		other.Status += "_"
		if two, err := other.digestStep(); err != nil || two == one {
			t.Errorf("two steps have the digest %s, %v", one, err)
		}
	})
}
