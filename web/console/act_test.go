package console

import (
	"fmt"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"github.com/agentledger/agentledger/web/page"
)

// The title and the list name who ended an act only if the ledger has it.
func TestWhoEndedAnAct(t *testing.T) {
	t.Parallel()
	pending := map[string]string{"a1": "the agent"}
	for _, c := range []struct {
		act            wire.Act
		title, decider string
	}{
		{wire.Act{Outcome: "denied", Decision: id.Deny, DecidedBy: wire.DecidedBy{Policy: "p"}}, "The policy denied pay", "policy"},
		{wire.Act{Outcome: "denied", Decision: id.Allow}, "The agent says that pay was denied", "–"},
		{wire.Act{Outcome: "expired", Approval: "a2"}, "The approval expired before pay was run", "nobody voted"},
		{wire.Act{Outcome: "cancelled", Approval: "a1"}, "pay was cancelled", "the agent"},
		{wire.Act{Outcome: "cancelled", Approval: "a2"}, "pay was cancelled", "–"},
		{wire.Act{Outcome: "cancelled"}, "pay was cancelled", "–"},
	} {
		c.act.Tool = "pay"
		v := &actView{Act: c.act, AgentName: page.Name{Text: "Bot"}}
		if got := v.title(); got != c.title {
			t.Errorf("got the title %q, want %q", got, c.title)
		}
		if got := decider(&c.act, pending); got != c.decider {
			t.Errorf("%s: got %q as the decider, want %q", c.title, got, c.decider)
		}
	}
}

// The page of an act says what a receipt of a tool says, and whether the tool confirms the act.
func TestActTellsReceipt(t *testing.T) {
	t.Parallel()
	const organization = "ab000000-0000-0000-0000-000000000001"
	note := func(name, status string) string {
		return `agentledger/receipt/v1\n` + organization + `\nagt_1\npay\n` + strings.Repeat("0", 64) + `\n-\ne\n` + status + `\n2026-11-20T12:00:00.123Z\n\n— ` + name +
			` ` + strings.Repeat("A", 88) + `\n`
	}
	const named = "did:web:payments.example"
	for name, c := range map[string]struct {
		receipt string
		want    bool
		found   wire.ActResult
		says    string
	}{
		"a receipt":       {note(named, "200"), true, wire.ActResult{Receipt: "unchecked"}, "The result has a receipt in the name of did:web:payments.example with status 200 at 2026-11-20T12:00:00.123Z. It is not checked here"},
		"without a grant": {note("another", "200"), true, wire.ActResult{Receipt: "confirmed", ConfirmedBy: named}, "Confirmed by did:web:payments.example with status 200 at 2026-11-20T12:00:00.123Z. It checked no grant"},
		"with a grant": {strings.Replace(note("another", "200"), `\n-\ne\n`, `\napr_1\n`+strings.Repeat("0", 32)+`\n`, 1), true, wire.ActResult{Receipt: "confirmed", ConfirmedBy: named},
			"Confirmed by did:web:payments.example with status 200 at 2026-11-20T12:00:00.123Z"},
		"wrong":             {note(named, "200"), true, wire.ActResult{Receipt: "wrong"}, "The result has a receipt in the name of did:web:payments.example which is not a receipt of this act."},
		"a long name":       {receipt: note(strings.Repeat("a", 256), "200")},
		"another form":      {receipt: note(named, "99")},
		"not of a tool":     {receipt: "R-1009"},
		"without signature": {receipt: `agentledger/receipt/v1\n`},
	} {
		v := &actView{Act: wire.Act{Result: &c.found}}
		v.tellReceipt(5, fmt.Sprintf(`{"schema_version":1,"event_id":"e","organization_id":"%s","trace_id":"t","agent_id":"agt_1","key_id":"k","emitted_at":"2026-11-20T12:00:00Z",`+
			`"actor_type":"agent","actor_principal":"svc","action_kind":"tool_call","tool_name":"pay","policy_decision":"allow","payload":{"phase":"result","receipt":"%s"},`+
			`"sig_alg":"ed25519","sig_value_b64":"%s"}`, organization, c.receipt, strings.Repeat("A", 86)+"=="))
		if (len(v.Story) == 1) != c.want {
			t.Errorf("%s: got %+v, want a line: %v", name, v.Story, c.want)
		}
		for _, l := range v.Story {
			if got := l.Words + " " + l.Object + " " + l.Then; l.At != 5 || !strings.HasPrefix(got, c.says) || strings.Contains(got, "grant") && !strings.Contains(c.says, "grant") && c.found.Receipt == "confirmed" {
				t.Errorf("%s: got %+v", name, l)
			}
		}
	}
}
