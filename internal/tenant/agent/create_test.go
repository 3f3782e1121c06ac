package agent_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func encode(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// multikey returns a public key in the form that statements use.
func multikey(p edkey.Public) string { return did.Multikey(p.Bytes()) }

func TestNewAgentIsNotStated(t *testing.T) {
	w := newWorld(t)
	for _, tenant := range []id.Tenant{red, blue} {
		w.wantStatements(tenant)
		c := w.first[tenant]
		got, err := w.signingKey(tenant, c.Agent, c.Key)
		want := agent.Key{
			Agent: c.Agent, ID: c.Key, Public: c.Private.Public(), Multikey: did.Multikey(c.Private.Public().Bytes()), Custody: event.CustodyServer,
			Status: agent.Active, RegisteredAt: id.InstantOf(w.Clock()), RegisteredBy: "operator",
		}
		if err != nil || got != want {
			t.Errorf("tenant %d: got %+v, %v; want %+v", tenant, got, err, want)
		}
	}
}

func TestCreateAgentIsStated(t *testing.T) {
	w := newWorld(t)
	made, c, err := w.agents.CreateAgent(t.Context(), red, ann, agent.Wanted{ID: "billing-bot", DisplayName: "Billing"})
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Agent{ID: "billing-bot", DisplayName: "Billing", CreatedAt: id.InstantOf(w.Clock()), CreatedBy: ann}
	if made != want || c.Agent != made.ID {
		t.Errorf("got %+v and credentials of %s, want %+v", made, c.Agent, want)
	}
	w.wantStatements(red,
		ledgertest.Statement{Kind: "ledger_agent_created", Principal: ann, Payload: `{"agent_id":"billing-bot","display_name":"Billing"}`},
		ledgertest.Statement{Kind: "ledger_key_registered", Principal: ann, Payload: fmt.Sprintf(
			`{"agent_id":"billing-bot","custody":"server","key_id":"%s","public_key":"%s"}`, c.Key, multikey(c.Private.Public()))},
	)
	w.wantStatements(blue)
	w.hasStatus(red, c.Agent, c.Key, agent.Active)
	_, err = w.signingKey(blue, c.Agent, c.Key)
	refused(t, "the key for another organization", err, fault.NotFound, "Not found")
}

func TestCreateAgentNamesTheNameless(t *testing.T) {
	w := newWorld(t)
	a, b := w.create(red, ""), w.create(red, "")
	if a.Agent == b.Agent || a.Key == b.Key || !strings.HasPrefix(string(a.Agent), "agt_") || !strings.HasPrefix(string(a.Key), "key_") {
		t.Errorf("got %s %s and %s %s", a.Agent, a.Key, b.Agent, b.Key)
	}
}

func TestCreateAgentRefuses(t *testing.T) {
	w := newWorld(t)
	w.create(red, "taken-here")
	w.create(blue, "taken-elsewhere")
	const form = "agent_id must be 3 to 64 of a-z 0-9 . _ - and begin with a letter or a digit"
	const reserved = "agent_id must not begin with agt_, bridge_, system or ledger"
	const display = "display_name must have at most 256 characters, none of them a control character"
	for name, tc := range map[string]struct {
		wanted  agent.Wanted
		kind    fault.Kind
		message string
	}{
		"too short":         {agent.Wanted{ID: "ab"}, fault.Invalid, form},
		"too long":          {agent.Wanted{ID: id.Agent(strings.Repeat("a", 65))}, fault.Invalid, form},
		"upper case":        {agent.Wanted{ID: "Bot-1"}, fault.Invalid, form},
		"begins with a dot": {agent.Wanted{ID: ".bot"}, fault.Invalid, form},
		"slash":             {agent.Wanted{ID: "bot/1"}, fault.Invalid, form},
		"umlaut":            {agent.Wanted{ID: "böt"}, fault.Invalid, form},
		"agt_":              {agent.Wanted{ID: "agt_mine"}, fault.Invalid, reserved},
		"bridge_":           {agent.Wanted{ID: "bridge_1"}, fault.Invalid, reserved},
		"system":            {agent.Wanted{ID: "system"}, fault.Invalid, reserved},
		"system prefix":     {agent.Wanted{ID: "systematic"}, fault.Invalid, reserved},
		"ledger prefix":     {agent.Wanted{ID: "ledger-bot"}, fault.Invalid, reserved},
		"control character": {agent.Wanted{DisplayName: "a\nb"}, fault.Invalid, display},
		"long name":         {agent.Wanted{DisplayName: strings.Repeat("é", 257)}, fault.Invalid, display},
		"not UTF-8":         {agent.Wanted{DisplayName: "\xff"}, fault.Invalid, display},
		"taken here":        {agent.Wanted{ID: "taken-here"}, fault.Conflict, "agent_id is taken"},
		"taken elsewhere":   {agent.Wanted{ID: "taken-elsewhere"}, fault.Conflict, "agent_id is taken"},
	} {
		size := w.State(t, red).Size()
		_, _, err := w.agents.CreateAgent(t.Context(), red, ann, tc.wanted)
		refused(t, name, err, tc.kind, tc.message)
		_, _, err = w.agents.NewAgent(t.Context(), 99, ann, tc.wanted)
		refused(t, name+", new organization", err, tc.kind, tc.message)
		if got := w.State(t, red).Size(); got != size {
			t.Errorf("%s: the refusal left %d events", name, got-size)
		}
	}
	for _, good := range []id.Agent{"abc", "0-._", id.Agent(strings.Repeat("z", 64)), "agt-1", "bridge-1", "my.system"} {
		w.create(red, good)
	}
}

// If two organizations request an agent id concurrently, exactly one gets it.
func TestCreateAgentAtOnce(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	var mu sync.Mutex
	made := map[id.Tenant]int{}
	for range 4 {
		for _, tenant := range []id.Tenant{red, blue} {
			group.Go(func() {
				_, _, err := w.agents.CreateAgent(t.Context(), tenant, ann, agent.Wanted{ID: "contested"})
				if err != nil {
					refused(t, "loser", err, fault.Conflict, "agent_id is taken")
					return
				}
				mu.Lock()
				made[tenant]++
				mu.Unlock()
			})
		}
	}
	group.Wait()
	if made[red]+made[blue] != 1 {
		t.Fatalf("got %d agents, want 1", made[red]+made[blue])
	}
	statements := append(w.Audit(t, red), w.Audit(t, blue)...)
	if len(statements) != 2 {
		t.Errorf("got %d statements, want 2: %+v", len(statements), statements)
	}
}

// If the append after a claim failed, nothing is visible, the name stays reserved for its owner, and the owner can
// retry.
func TestCreateAgentAfterAFailedAppend(t *testing.T) {
	w := newWorld(t)
	w.Store.Fail(func(storage.Batch) storagetest.Failure { return storagetest.Refused })
	_, _, err := w.agents.CreateAgent(t.Context(), red, ann, agent.Wanted{ID: "unlucky"})
	if err == nil {
		t.Fatal("the append did not fail")
	}
	w.Store.Fail(nil)
	_, err = w.agents.Owner(t.Context(), "unlucky")
	refused(t, "claim with nothing behind it", err, fault.NotFound, "Not found")
	_, _, err = w.agents.CreateAgent(t.Context(), blue, ann, agent.Wanted{ID: "unlucky"})
	refused(t, "another's claim", err, fault.Conflict, "agent_id is taken")
	w.create(red, "unlucky")
}

func TestCredentials(t *testing.T) {
	private, err := edkey.PrivateFromSeed(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	c := agent.Credentials{Agent: "agt_1", Key: "key_1", Private: private}
	got, err := json.Marshal(c)
	want := `{"agent_id":"agt_1","key_id":"key_1","private_key_b64":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=","public_key_b64":"` + private.Public().String() + `"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("made", "credentials", c)
	slog.New(slog.NewTextHandler(&logged, nil)).Info("made", "credentials", &c)
	fmt.Fprintf(&logged, "%v %+v %#v %s", c, c, c, &c)
	if strings.Contains(logged.String(), "BwcHBw") || strings.Contains(logged.String(), "7 7 7") {
		t.Errorf("the private key shows in %s", logged.String())
	}
}
