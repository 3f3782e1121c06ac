package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// Every step from every status, by name of the step.
func TestKeyStatus(t *testing.T) {
	const retired, revoked = "The key is retired already", "The key is revoked already"
	for _, tc := range []struct {
		steps   string
		message string // refusal of the last step; "" if it is accepted
		want    agent.Status
	}{
		{"", "", agent.Active},
		{"retire", "", agent.Retired},
		{"revoke", "", agent.Revoked},
		{"retire revoke", "", agent.Revoked},
		{"retire retire", retired, agent.Retired},
		{"revoke revoke", revoked, agent.Revoked},
		{"revoke retire", revoked, agent.Revoked},
		{"retire revoke retire", revoked, agent.Revoked},
	} {
		w := newWorld(t)
		for _, tenant := range []id.Tenant{red, blue} {
			w.register(tenant, w.first[tenant].Agent, "k1", edkey.NewPrivate())
		}
		bot := w.first[red].Agent
		steps := strings.Fields(tc.steps)
		for i, step := range steps {
			w.Pass(time.Second)
			err := w.step(step, red, bot, "k1")
			if i == len(steps)-1 && tc.message != "" {
				refused(t, tc.steps, err, fault.Conflict, tc.message)
			} else if err != nil {
				t.Errorf("%s: %s: %v", tc.steps, step, err)
			}
		}
		w.hasStatus(red, bot, "k1", tc.want)
		w.hasStatus(red, bot, w.first[red].Key, agent.Active)
		w.hasStatus(blue, w.first[blue].Agent, "k1", agent.Active)
		if len(w.Audit(t, blue)) != 1 {
			t.Errorf("%s: the other organization's ledger has grown", tc.steps)
		}
	}
}

func (w *world) step(step string, tenant id.Tenant, bot id.Agent, key id.Key) error {
	if step == "retire" {
		_, err := w.agents.RetireKey(w.t.Context(), tenant, ann, bot, key)
		return err
	}
	_, err := w.agents.RevokeKey(w.t.Context(), tenant, ann, bot, key, agent.Revocation{})
	return err
}

func TestEndOfAKeyIsStated(t *testing.T) {
	w := newWorld(t)
	bot := w.first[red].Agent
	one, two := edkey.NewPrivate(), edkey.NewPrivate()
	w.register(red, bot, "k1", one)
	w.register(red, bot, "k2", two)
	w.Pass(time.Minute)
	retired, err := w.agents.RetireKey(t.Context(), red, ann, bot, "k1")
	if err != nil {
		t.Fatal(err)
	}
	from := id.Index(1)
	revoked, err := w.agents.RevokeKey(t.Context(), red, "acc_bob", bot, "k2", agent.Revocation{CompromisedFrom: &from, Reason: "laptop lost"})
	if err != nil {
		t.Fatal(err)
	}
	if retired.EndedAt != id.InstantOf(w.Clock()) || revoked.EndedAt != id.InstantOf(w.Clock()) || *revoked.CompromisedFrom != from {
		t.Errorf("got %+v and %+v", retired, revoked)
	}
	if _, err := w.agents.RevokeKey(t.Context(), red, ann, bot, "k1", agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	key := func(name string, p edkey.Private) string {
		return fmt.Sprintf(`"custody":"agent","key_id":"%s","public_key":"%s"`, name, multikey(p.Public()))
	}
	want := []ledgertest.Statement{
		{Kind: "ledger_key_retired", Principal: ann, Payload: fmt.Sprintf(`{"agent_id":"%s",%s}`, bot, key("k1", one))},
		{Kind: "ledger_key_revoked", Principal: "acc_bob", Payload: fmt.Sprintf(`{"agent_id":"%s","compromised_from":1,%s,"reason":"laptop lost"}`, bot, key("k2", two))},
		{Kind: "ledger_key_revoked", Principal: ann, Payload: fmt.Sprintf(`{"agent_id":"%s","compromised_from":null,%s,"reason":""}`, bot, key("k1", one))},
	}
	statements := w.Audit(t, red)
	for i, got := range statements[len(statements)-3:] {
		if got != want[i] {
			t.Errorf("statement %d: got %+v, want %+v", i, got, want[i])
		}
	}
}

// compromised_from may be any index up to that of the revocation.
func TestCompromisedFrom(t *testing.T) {
	const beyond = "compromised_from must not be after the end of the log"
	w := newWorld(t)
	bot := w.first[red].Agent
	for i := range 3 {
		w.register(red, bot, id.Key(fmt.Sprintf("k%d", i)), edkey.NewPrivate())
	}
	for _, from := range []id.Index{4, 5, 1 << 52, ^id.Index(0)} {
		_, err := w.agents.RevokeKey(t.Context(), red, ann, bot, "k0", agent.Revocation{CompromisedFrom: &from})
		refused(t, fmt.Sprint(from), err, fault.Invalid, beyond)
	}
	w.hasStatus(red, bot, "k0", agent.Active)
	for i, from := range []id.Index{3, 0, 1} {
		if own := w.State(t, red).Size(); from > own {
			t.Fatalf("case %d does not fit", i)
		}
		k, err := w.agents.RevokeKey(t.Context(), red, ann, bot, id.Key(fmt.Sprintf("k%d", i)), agent.Revocation{CompromisedFrom: &from})
		if err != nil || *k.CompromisedFrom != from {
			t.Errorf("from %d: got %+v, %v", from, k, err)
		}
		if stored, err := w.signingKey(red, bot, k.ID); err != nil || *stored.CompromisedFrom != from {
			t.Errorf("from %d: stored %+v, %v", from, stored, err)
		}
	}
}

func TestEndRefuses(t *testing.T) {
	w := newWorld(t)
	c := w.create(red, "billing-bot")
	for name, tc := range map[string]struct {
		tenant id.Tenant
		agent  id.Agent
		key    id.Key
	}{
		"unknown key":           {red, "billing-bot", "nothing"},
		"another agent's key":   {red, w.first[red].Agent, c.Key},
		"unknown agent":         {red, "nobody", c.Key},
		"another organization":  {blue, "billing-bot", c.Key},
		"both names in the key": {red, "billing-bot/" + id.Agent(c.Key), ""},
	} {
		for _, step := range []string{"retire", "revoke"} {
			refused(t, name, w.step(step, tc.tenant, tc.agent, tc.key), fault.NotFound, "Not found")
		}
	}
	_, err := w.agents.RevokeKey(t.Context(), red, ann, "billing-bot", c.Key, agent.Revocation{Reason: strings.Repeat("x", 1025)})
	refused(t, "long reason", err, fault.Invalid, "reason must have at most 1024 characters, none of them a control character")
}
