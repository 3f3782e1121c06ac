package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify"
)

// Members revoke the bridge key like any other: the bundle of what it signed states so, for whomever it signed, and the
// next step is signed by another key.
func TestBridgeKeyIsRevoked(t *testing.T) {
	p := startProcess(t, t.TempDir())
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	person := newRefunder(t, p, red).person
	if err := person.callConsole(t.Context(), "PATCH", "/agents/"+string(red.Agent.AgentID), map[string]any{"bridge": true}, nil); err != nil {
		t.Fatal(err)
	}
	r, other := &toolRun{t: t, org: red, told: map[string]stepAnswer{}}, &toolRun{t: t, org: blue, external: "other", told: map[string]stepAnswer{}}
	status, answer, err := r.ask(p.main, "POST", "/workflows/runs", `{"workflow":{"name":"drill"},"agent_id":"`+string(red.Agent.AgentID)+`"}`)
	var started struct {
		RunID string `json:"run_id"`
	}
	if err == nil {
		err = json.Unmarshal(answer, &started)
	}
	if err != nil || status != http.StatusCreated {
		t.Fatalf("start: got %d %s, %v", status, answer, err)
	}
	r.path = "/workflows/runs/" + started.RunID
	if !r.one(p.main) || !other.one(p.main) || !other.one(p.main) {
		t.Fatal("no step was recorded")
	}
	first := r.told["s1"]
	before := r.record(p, first.EventID)
	if before.key == "" || before.signer != "bridge" || before.agent != string(red.Agent.AgentID) || before.claim != "" {
		t.Errorf("before: got %+v", before)
	}

	var agents struct {
		Agents []struct {
			AgentID string `json:"agent_id"`
			Bridge  bool   `json:"bridge"`
		} `json:"agents"`
	}
	if err := person.callConsole(t.Context(), "GET", "/agents", nil, &agents); err != nil {
		t.Fatal(err)
	}
	revoked := false
	for _, a := range agents.Agents {
		if !strings.HasPrefix(a.AgentID, "bridge_") {
			continue
		}
		path := "/agents/" + a.AgentID + "/keys/" + before.key + "/revoke"
		if err := person.callConsole(t.Context(), "POST", path, map[string]any{"compromised_from": first.Number - 1, "reason": "a drill"}, nil); err != nil {
			t.Fatal(err)
		}
		revoked = a.Bridge
	}
	if !revoked {
		t.Fatalf("there is no bridge agent: %+v", agents)
	}
	if after := r.record(p, first.EventID); after.claim != verify.KeyCompromised {
		t.Errorf("after: got %+v, want the claim that its key is compromised", after)
	}
	r.told = map[string]stepAnswer{}
	if !r.one(p.main) {
		t.Fatal("no step was recorded under another key")
	}
	for _, answer := range r.told {
		if got := r.record(p, answer.EventID); got.key == before.key || got.signer != "bridge" || got.claim != "" {
			t.Errorf("the next step: got %+v", got)
		}
	}
	if got := other.record(p, other.told["s1"].EventID); got.claim != "" {
		t.Errorf("the other organization: got %+v", got)
	}
}

// signedBy is the part of a public bundle about the signer.
type signedBy struct{ key, signer, agent, claim string }

func (r *toolRun) record(p *process, name id.Event) signedBy {
	r.t.Helper()
	l, err := newPublicLog(p.main, r.org)
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := l.client.FetchBundle(r.t.Context(), r.org.Slug, name)
	if err != nil {
		r.t.Fatalf("%s: %v", name, err)
	}
	bundle, err := verify.ParseBundle(raw)
	if err != nil || bundle.Record == nil {
		r.t.Fatalf("%s: %v", raw, err)
	}
	record, err := event.ParseRecord([]byte(*bundle.Record))
	if err != nil {
		r.t.Fatal(err)
	}
	return signedBy{string(record.KeyID), string(record.Signer), string(record.AgentID), bundle.OperatorStatement.KeyClaim}
}
