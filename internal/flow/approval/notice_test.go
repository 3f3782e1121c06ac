package approval

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// The exact bytes of the documents about an approval, which are stored until they are delivered.
func TestNoticeDocuments(t *testing.T) {
	bare := &record{CreatedAt: 1_700_000_000_000, ExpiresAt: 1_700_000_060_000}
	full := &record{Agent: "agent-1", Tool: "a.b.c", ActionDigest: id.Hash{1}, Trace: "trace-1", PolicyID: "p", PolicyVersion: 7,
		RuleID: "r", Reason: "above \"100\" <&>\t\x01", Quorum: 2, Votes: []Vote{{Vote: Approve, Comment: "ok\n", Code: "fine"}},
		CreatedAt: 1_700_000_000_000, ExpiresAt: 1_700_000_060_000}
	for want, got := range map[string]any{
		`{"approval_id":"a-1","status":"pending","action_digest":"0000000000000000000000000000000000000000000000000000000000000000","agent_id":"","trace_id":"","comment":null,"reason_code":null}`:                                                                                                                                                                                                                         newCallback("a-1", bare, Pending),
		`{"approval_id":"a-1","status":"pending","action_digest":"0000000000000000000000000000000000000000000000000000000000000000","agent_id":"","trace_id":"","comment":null,"reason_code":null,"tool_name":"","policy_id":"","policy_version":0,"rule_id":"","reason":"","quorum":0,"created_at":"2023-11-14T22:13:20.000Z","expires_at":"2023-11-14T22:14:20.000Z"}`:                                                    newNotice("a-1", bare, Pending),
		`{"approval_id":"a-1","status":"approved","action_digest":"0100000000000000000000000000000000000000000000000000000000000000","agent_id":"agent-1","trace_id":"trace-1","comment":"ok\n","reason_code":"fine","tool_name":"a.b.c","policy_id":"p","policy_version":7,"rule_id":"r","reason":"above \"100\" <&>\t\u0001","quorum":2,"created_at":"2023-11-14T22:13:20.000Z","expires_at":"2023-11-14T22:14:20.000Z"}`: newNotice("a-1", full, Approved),
	} {
		if got := string(document(got)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// The text for people has the numbers of a tagged payload.
func TestNoticeHasNumbers(t *testing.T) {
	asked := &record{Payload: []byte(`{"$tagged":true,"id":{"$number":"9007199254740993"}}`)}
	m, ok := noticeMessage("a-1", asked, "requested", nil)
	if want := [][2]string{{"id", "9007199254740993"}}; !ok || !slices.Equal(m.Card.Fields, want) {
		t.Errorf("got %q", m.Card.Fields)
	}
}

// People see each member of the payload as it was sent: a text that could be taken for a number keeps its quotes.
func TestCard(t *testing.T) {
	asked := &record{Agent: "agt_1", AgentName: "Refund bot", Tool: "payments.refund", Reason: "A person looks", Quorum: 2, ExpiresAt: 1_700_000_060_000,
		Principal: "ops@acme.example", Payload: []byte(`{"amount":640.00,"big":1E400,"count":"640","gone":null,"items":[{"n":2}],"name":"Ann","pad":" x","empty":"","yes":true}`)}
	m, _ := noticeMessage("apr_1", asked, "requested", nil)
	want := webhook.Card{Approval: "apr_1", Ballot: "apr_1 " + id.Hash{}.String(), Header: "Approve payments.refund?", Agent: "Refund bot", Tool: "payments.refund",
		Why: "A person looks · 2 approvals needed", Until: 1_700_000_060_000, Fields: [][2]string{{"amount", "640.00"}, {"big", "1E400"}, {"count", `"640"`},
			{"gone", "null"}, {"items", `[{"n":2}]`}, {"name", "Ann"}, {"pad", `" x"`}, {"empty", `""`}, {"yes", "true"}, {"Principal", "ops@acme.example (agent said)"}}}
	if !reflect.DeepEqual(*m.Card, want) {
		t.Errorf("got  %+v\nwant %+v", *m.Card, want)
	}
	if m, _ := noticeMessage("apr_1", &record{Tool: "payments.refund", Payload: []byte(`{"amount_usd":640}`)}, "requested", []org.Column{{Path: "amount_usd"}}); m.Card.Header != "Approve 640.00 USD?" {
		t.Errorf("amount: got %+v", m.Card)
	}
	asked.OnBehalfOf = &event.OnBehalfOf{Issuer: "https://login.example", Subject: "u1"}
	want.Subject, want.Issuer, want.Standing = "u1", "https://login.example", "claimed"
	if m, _ := noticeMessage("apr_1", asked, "requested", nil); !reflect.DeepEqual(*m.Card, want) {
		t.Errorf("of a subject: got  %+v\nwant %+v", *m.Card, want)
	}
	asked.Standing, asked.OnBehalfOf.Actors = event.Verified, []event.Actor{{Subject: "planner"}} // the card shows no actors, so it takes no votes
	want.Standing, want.Ballot = "verified", ""
	if m, _ := noticeMessage("apr_1", asked, "requested", nil); !reflect.DeepEqual(*m.Card, want) {
		t.Errorf("with actors: got  %+v\nwant %+v", *m.Card, want)
	}
	asked.OnBehalfOf, asked.Standing = nil, ""
	asked.Signed = true
	if m, _ := noticeMessage("apr_1", asked, "requested", nil); m.Card.Ballot != "" {
		t.Errorf("a signed vote is needed: got %q", m.Card.Ballot)
	}
	asked.Signed = false
	asked.AgentName, asked.Reason, asked.RuleID, asked.Quorum = "", "", "refund", 1
	asked.eraseTexts(1)
	m, _ = noticeMessage("apr_1", asked, "requested", nil)
	if c := m.Card; c.Approval != "" || len(c.Fields) != 0 || c.Agent != "agt_1" || c.Why != "Rule refund · 1 approval needed" {
		t.Errorf("erased: got %+v", *c)
	}
}

// A tool's name that Slack would turn into a link is in no title and no header.
func TestNoticeHasNoLink(t *testing.T) {
	for _, to := range []string{"requested", "approved"} {
		m, _ := noticeMessage("apr_1", &record{Tool: "https://evil.example/approve"}, to, nil)
		if strings.Contains(m.Title, "evil") || m.Card != nil && m.Card.Header != "Approve (on the page)?" {
			t.Errorf("%s: got %+v", to, m)
		}
	}
}

func TestParseBallot(t *testing.T) {
	name, action, err := ParseBallot(FormatBallot("apr_1", id.Hash{7}))
	if name != "apr_1" || action != (id.Hash{7}) || err != nil {
		t.Errorf("got %s, %s, %v", name, action, err)
	}
	for _, text := range []string{"", "apr_1", "apr_1 07", "apr_1  " + id.Hash{7}.String(), "apr_1 " + id.Hash{7}.String() + " x"} {
		if name, action, err := ParseBallot(text); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: got %s, %s, %v", text, name, action, err)
		}
	}
}
