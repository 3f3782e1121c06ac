package main

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/client/guard"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
)

var guardedDir = flag.String("guarded", "", "be the agent of TestGuardThroughKills, with its files in this folder")

// guardedActions is the number of the agent's actions.
const guardedActions = 60

// beGuarded is an agent that performs its actions one after the other, and records each in a file. A restarted agent
// continues.
func beGuarded(dir string) int {
	if err := guardedAgent(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func guardedAgent(dir string) error {
	c, err := client.New(client.Config{BaseURL: os.Getenv("APS_URL"), Token: os.Getenv("APS_TOKEN"), Retry: client.Retry{Attempts: 3, Max: 300 * time.Millisecond}})
	if err != nil {
		return err
	}
	organization, err := id.ParseOrganization(os.Getenv("APS_ORG"))
	if err != nil {
		return err
	}
	who := client.Identity{Organization: organization, Agent: id.Agent(os.Getenv("APS_AGENT")), Key: id.Key(os.Getenv("APS_KEY_ID"))}
	signer, err := client.ParseSigner(who, os.Getenv("AGENT_KEY"))
	if err != nil {
		return err
	}
	journal, err := guard.OpenJournal(filepath.Join(dir, "journal"), guard.JournalOptions{})
	if err != nil {
		return err
	}
	actions, err := guard.New(guard.Config{Client: c, Signer: signer, Journal: journal})
	if err != nil {
		return err
	}
	ran, err := os.OpenFile(filepath.Join(dir, "ran"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	for n := range guardedActions {
		_, err := actions.Run(context.Background(), guardedAction(n), func(context.Context, guard.Permit) (any, error) {
			_, err := fmt.Fprintf(ran, "%d\n", n)
			return map[string]any{"n": n}, errors.Join(err, ran.Sync())
		})
		if err != nil && !errors.Is(err, guard.ErrInterrupted) {
			return err
		}
	}
	return actions.Flush(context.Background())
}

func guardedAction(n int) guard.Action {
	return guard.Action{Key: fmt.Sprint("action-", n), Tool: "acme.act", Trace: id.Trace(fmt.Sprint("trace-", n)), Payload: map[string]any{"n": n}}
}

// Agent and service are killed at random moments and restarted: each action is done at most once, and the ledger states
// which were done, and which have an unknown outcome.
func TestGuardThroughKills(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir()
	p := startProcess(t, data)
	red := p.found(t.Context(), "red", map[string]any{"disclosure": "full"})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for done := false; !done; {
		agent := exec.Command(self, "-guarded", dir)
		agent.Env = append(os.Environ(), "APS_URL="+p.main, "APS_TOKEN="+red.IngestKey.Secret, "APS_ORG="+red.OrganizationID.String(),
			"APS_AGENT="+string(red.Agent.AgentID), "APS_KEY_ID="+string(red.Agent.KeyID), "AGENT_KEY="+red.Agent.PrivateB64)
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- agent.Wait() }()
		patience := time.Duration(50+random.IntN(400)) * time.Millisecond
		if kills >= 10 {
			patience = time.Minute
		}
		select {
		case err := <-ended:
			done = err == nil
			continue
		case <-time.After(patience):
		}
		kills++
		if kills%3 == 0 {
			p.kill() // the service; the agent fails closed, or is killed next
			p = startProcess(t, data)
		}
		agent.Process.Kill()
		<-ended
	}
	checkGuarded(t, p, red, dir)
	p.terminate()
	if out, exit := command(t, "agentledger", "fsck", "--data", data); exit != 0 {
		t.Errorf("fsck: %s", out)
	}
}

// checkGuarded compares what the agent did with the ledger.
func checkGuarded(t *testing.T, p *process, org foundedOrganization, dir string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ran"))
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for line := range strings.Lines(string(text)) {
		ran["trace-"+strings.TrimSpace(line)]++
	}
	results, stated := ledgerOf(t, p, org)
	unknown := 0
	for n := range guardedActions {
		trace := fmt.Sprint("trace-", n)
		times, result := ran[trace], results[trace]
		if times > 1 {
			t.Errorf("%s was done %d times", trace, times)
		}
		if stated[trace] != 1 { // a lost answer is requested again with the same event
			t.Errorf("%s: the ledger has %d intents, want 1", trace, stated[trace])
		}
		switch {
		case len(result) != 1:
			t.Errorf("%s: the ledger has the results %q, want one", trace, result)
		case result[0] == "unknown":
			unknown++
		case result[0] != "ok" || times != 1:
			t.Errorf("%s was done %d times, but the ledger has %s", trace, times, result[0])
		}
	}
	t.Logf("%d actions, %d with an unknown outcome", guardedActions, unknown)
}

// ledgerOf reads the public bundles: the results in the ledger, and the number of intents, by trace.
func ledgerOf(t *testing.T, p *process, org foundedOrganization) (results map[string][]string, stated map[string]int) {
	t.Helper()
	results, stated = map[string][]string{}, map[string]int{}
	signer, err := client.ParseSigner(client.Identity{Organization: org.OrganizationID, Agent: org.Agent.AgentID, Key: org.Agent.KeyID}, org.Agent.PrivateB64)
	if err != nil {
		t.Fatal(err)
	}
	name := func(n int, use string) string {
		secret := signer.Secret("aps/guard/event_id", []byte(use+"\n"+guardedAction(n).Key))
		return "evt_" + hex.EncodeToString(secret[:16])
	}
	for n := range guardedActions {
		trace := string(guardedAction(n).Trace)
		if e := disclosed(t, p, name(n, "result")); e != nil {
			var payload struct {
				Status string `json:"status"`
			}
			if err := json.Unmarshal(e.Payload, &payload); err != nil {
				t.Fatal(err)
			}
			results[trace] = append(results[trace], payload.Status)
		}
		for attempt := 1; attempt < 20; attempt++ {
			if e := disclosed(t, p, name(n, fmt.Sprint("intent/", attempt))); e != nil && string(e.TraceID) == trace && e.Decision == id.Allow {
				stated[trace]++
			}
		}
	}
	return results, stated
}

// disclosed returns the envelope in an event's bundle, or nil if there is no such event.
func disclosed(t *testing.T, p *process, name string) *event.Envelope {
	t.Helper()
	answer, err := http.Get(p.main + "/v1/public/orgs/red/verify/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound {
		return nil
	}
	var bundle struct {
		Envelope string `json:"envelope"`
	}
	if err := json.UnmarshalRead(answer.Body, &bundle); err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("bundle: status %d, %v", answer.StatusCode, err)
	}
	e, err := event.Parse([]byte(bundle.Envelope), event.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}
