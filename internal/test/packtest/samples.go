package packtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/verify/pack"
)

// Sample is a valid pack.
type Sample struct {
	Name  string
	Parts *Parts
	// The facts that the pack proves.
	Begin, End              id.Index
	Shown, Withheld, Erased uint64
}

// NewSampleLog returns the log of the samples: 13 events of two agents and of the service. Event 10 erases the envelope
// of event 3, and event 12 that of event 6.
func NewSampleLog(t testing.TB) *Log {
	t.Helper()
	l := NewLog(t)
	l.Append(EventSpec{Tool: "acme.orders.read"})
	for i, transition := range []string{"requested", "approved"} {
		l.Append(EventSpec{Kind: "ledger_approval",
			Payload: map[string]any{"approval_id": Approval, "transition": transition, "step": i + 1}})
	}
	l.Append(EventSpec{Tool: "acme.payments.refund", Judged: true, Approval: Approval})
	l.Append(EventSpec{Agent: "agt_2", Tool: "acme.mail.send", Trace: "other", Judged: true})
	l.Append(EventSpec{Tool: "acme.orders.read", Canonical: true})
	l.Append(EventSpec{Agent: "agt_2", Tool: "acme.orders.read"})
	l.Append(EventSpec{Payload: map[string]any{"text": "no tool"}})
	l.Append(EventSpec{Agent: "agt_2", Trace: "other"})
	l.Append(EventSpec{Tool: "acme.orders.write", Judged: true})
	l.Append(EventSpec{Kind: "ledger_envelope_erased", Payload: erasedRanges(3, 4)})
	l.Append(EventSpec{Tool: "acme.orders.read"})
	l.Append(EventSpec{Kind: "ledger_envelope_erased", Payload: erasedRanges(6, 7)})
	return l
}

// NewApprovalLog returns a log of six events in which Approval is bound to an action: an intent, three statements, the
// action and an export.
func NewApprovalLog(t testing.TB) *Log {
	t.Helper()
	return approvalLog(t, `{"amount_usd":1.5,"text":"\u00e9\u20ac"}`, nil, "")
}

// approvalLog returns the log of NewApprovalLog for an action with a payload. intent is the payload of the first event,
// nil for the usual one, and subject the canonical on_behalf_of of the action, "" for none.
func approvalLog(t testing.TB, payload string, intent map[string]any, subject string) *Log {
	t.Helper()
	l := NewLog(t)
	organizationID, err := id.ParseOrganization(organization)
	if err != nil {
		t.Fatal(err)
	}
	action, err := grant.NewAction(organizationID, "agt_1", "acme.payments.refund", []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	if subject != "" {
		action.OnBehalfOf = []byte(subject)
	}
	digest := action.Digest().String()
	l.Append(EventSpec{Tool: "acme.payments.refund", Judged: true, Payload: intent})
	for i, s := range []struct{ transition, vote, principal string }{
		{"requested", "", "ik_1"}, {"voted", "approve", "acc_1/session"}, {"approved", "approve", "acc_2"},
	} {
		payload := map[string]any{"approval_id": Approval, "transition": s.transition, "step": i + 1, "action_digest": digest}
		if s.vote != "" {
			payload["vote"] = s.vote
		}
		l.Append(EventSpec{Kind: "ledger_approval", Payload: payload, Principal: s.principal})
	}
	l.Append(EventSpec{Tool: "acme.payments.refund", Judged: true, Approval: Approval})
	l.Append(EventSpec{Kind: "ledger_evidence_exported", Payload: map[string]any{"manifest_sha256": digest}})
	l.approval = map[string]any{"action_digest": digest, "agent_id": "agt_1", "tool_name": "acme.payments.refund",
		"payload": string(action.Payload), "trace_id": "trc", "quorum": 2, "rule_id": "refunds",
		"people": []any{map[string]any{"account_id": "acc_1", "email": "ann@example.com"},
			map[string]any{"account_id": "acc_2", "email": ""}}}
	if subject != "" {
		l.approval["on_behalf_of"] = json.RawMessage(subject)
	}
	return l
}

func erasedRanges(begin, end int) map[string]any {
	return map[string]any{"ranges": [][]int{{begin, end}}, "reason": "request"}
}

// Samples returns valid packs of the log of NewSampleLog.
func Samples(t testing.TB, l *Log) []Sample {
	t.Helper()
	text := func(s string) *string { return &s }
	agent, trace := id.Agent("agt_2"), id.Trace("other")
	erased := Selection{Size: 13, Erased: []id.Index{3, 6}, Erasing: []id.Index{10, 12}}
	with := func(begin, end id.Index, r pack.Request) Selection {
		a := erased
		a.Begin, a.End, a.Request = begin, end, r
		return a
	}
	one := with(5, 9, pack.Request{From: text("5"), To: text("9"), AgentID: &agent, Envelopes: true})
	one.Erasing = []id.Index{12}
	early := Selection{Size: 8, End: 8, Request: pack.Request{Tool: text("acme.orders.*"), Envelopes: true}}
	late := Selection{Size: 13, Begin: 13, End: 13, Request: pack.Request{From: text("13")}}
	middle := Selection{Size: 9, Begin: 4, End: 6,
		Request: pack.Request{From: text("2026-11-18T14:26:45.000Z"), To: text("6"), TraceID: &trace}}
	agents, approved := l.Pack(one), NewApprovalLog(t)
	more := l.erasures(Selection{Size: 13, Erasing: []id.Index{10}}, new(pack.Counts))
	agents.spare = strings.TrimSuffix(more, "\n")
	number := map[string]any{"$tagged": true, "amount": map[string]any{"$number": "1915883588174806058"}}
	exact := approvalLog(t, `{"$tagged":true,"amount":{"$number":"1915883588174806058"}}`, number, "")
	forSubject := approvalLog(t, `{"amount_usd":1.5}`, nil, `{"actors":[{"subject":"spiffe://example.org/planner"}],"issuer":"https://login.example","subject":"al\"icé"}`)
	return []Sample{
		{"everything", l.Pack(with(0, 13, pack.Request{Envelopes: true})), 0, 13, 13, 0, 2},
		{"without envelopes", l.Pack(with(0, 13, pack.Request{})), 0, 13, 13, 0, 2},
		{"one agent in a range before the end of the tree", agents, 5, 9, 2, 2, 1},
		{"tools by a glob", l.Pack(early), 0, 8, 3, 5, 0},
		{"a trace, from a time", l.Pack(middle), 4, 6, 1, 1, 0},
		{"an empty range at the end", l.Pack(late), 13, 13, 0, 0, 0},
		{"an empty log", NewLog(t).Pack(Selection{}), 0, 0, 0, 0, 0},
		{"an approval of an action", approved.Pack(Selection{Size: 6, End: 6, Request: pack.Request{Envelopes: true}}), 0, 6, 6, 0, 0},
		{"an approval without payload", approved.Pack(Selection{Size: 6, End: 6}), 0, 6, 6, 0, 0},
		{"an approval of an exact number", exact.Pack(Selection{Size: 6, End: 6, Request: pack.Request{Envelopes: true}}), 0, 6, 6, 0, 0},
		{"an approval of a subject", forSubject.Pack(Selection{Size: 6, End: 6, Request: pack.Request{Envelopes: true}}), 0, 6, 6, 0, 0},
	}
}
