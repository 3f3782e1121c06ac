package packtest

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/tlog"
	"github.com/agentledger/agentledger/verify/pack"
)

// Names of the tools that sign receipts.
const (
	payments = "did:web:payments.example"
	mail     = "did:web:mail.example"
)

// ToolKey returns the key of a tool. Keys of other numbers have the same name.
func ToolKey(t testing.TB, name string, number byte) tlog.SignerKey {
	t.Helper()
	k, err := tlog.NewSignerKey(name, key(t, 40+number))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Texts returns the texts of keys.
func Texts(keys []tlog.VerifierKey) []string {
	texts := make([]string, len(keys))
	for i, k := range keys {
		texts[i] = k.String()
	}
	return texts
}

// ReceiptSample is a valid pack, with the keys of tools whose receipts confirm acts.
type ReceiptSample struct {
	Sample
	Tools []tlog.VerifierKey
}

// receiptLog is a log of guarded calls whose results have receipts of tools.
type receiptLog struct {
	*Log
	calls int
}

// call logs an intent and its result, whose receipt is the right one, as change changes it, signed by a key. without a key there is none.
func (l *receiptLog) call(approved bool, outcome string, by *tlog.SignerKey, change func(*grant.Receipt)) {
	l.t.Helper()
	l.calls++
	name, callID := id.Event(fmt.Sprintf("call_%d", l.calls)), fmt.Sprintf("c%d", l.calls)
	e := l.Append(EventSpec{ID: name, Tool: "acme.payments.refund", Judged: true,
		Payload: map[string]any{"phase": "intent", "call_id": callID, "salt": fmt.Sprintf("%022d", l.calls), "amount_usd": 1.5}}).Envelope
	r := grant.Receipt{Organization: e.OrganizationID, Agent: e.AgentID, Tool: e.Tool, Status: 200, At: receivedAt(uint64(len(l.Events))),
		ActionDigest: grant.ActionOf(e).WithoutSubject().Digest()}
	result := map[string]any{"phase": "result", "call_id": callID, "status": outcome}
	if r.Intent = name; approved {
		r.Intent, r.Approval, r.Nonce = "", fmt.Sprintf("apr_%d", l.calls), grant.Nonce{byte(l.calls)}
		result["approval_id"], result["grant_nonce"] = r.Approval, hex.EncodeToString(r.Nonce[:])
	}
	if by != nil {
		if change != nil {
			change(&r)
		}
		note, err := by.SignNote(r.Text())
		if err != nil {
			l.t.Fatal(err)
		}
		result["receipt"] = string(note.Bytes())
	}
	l.Append(EventSpec{Tool: "acme.payments.refund", Intent: name, Payload: result})
}

// NewReceiptLog returns a log of acts that tools confirm, and of acts that only the agent claims.
func NewReceiptLog(t testing.TB) *Log {
	t.Helper()
	l := &receiptLog{Log: NewLog(t)}
	payments, next, mail := ToolKey(t, payments, 0), ToolKey(t, payments, 1), ToolKey(t, mail, 2)
	l.call(true, "ok", &payments, nil)
	l.call(false, "ok", &payments, nil)
	l.call(true, "ok", nil, nil)
	l.call(false, "error", &payments, func(r *grant.Receipt) { r.Status = 503 })
	l.call(true, "ok", &mail, nil)
	l.call(false, "ok", &next, nil)
	l.call(false, "denied", nil, nil)
	l.Append(EventSpec{Tool: "acme.payments.refund", Intent: "call_1", Payload: map[string]any{"phase": "result", "receipt": "agentledger/receipt/v1\n"}}) // a later result
	l.Append(EventSpec{Tool: "acme.payments.refund", Intent: "call_0", Payload: map[string]any{"phase": "result", "receipt": "agentledger/receipt/v1\n"}}) // of no act
	l.Append(EventSpec{ID: "shop", Tool: "acme.orders.read", Judged: true, Payload: map[string]any{"phase": "intent"}})
	l.Append(EventSpec{Tool: "acme.orders.read", Intent: "shop", Payload: map[string]any{"phase": "result", "receipt": "R-1009"}}) // of a shop
	l.Append(EventSpec{Tool: "acme.orders.read", Judged: true, Payload: map[string]any{"receipt": "agentledger/receipt/v1\n"}})    // not a result
	return l.Log
}

// receiptSample returns the pack of a log with envelopes.
func receiptSample(l *Log, name string, change func(*Selection), tools ...tlog.SignerKey) ReceiptSample {
	size := id.Index(len(l.Events))
	a := Selection{Size: size, End: size, Request: pack.Request{Envelopes: true}, Acts: true}
	if change != nil {
		change(&a)
	}
	s := ReceiptSample{Sample: Sample{Name: "receipts: " + name, Parts: l.Pack(a), Begin: a.Begin, End: a.End}}
	s.Shown = s.Parts.Manifest.Counts.Records
	for _, k := range tools {
		s.Tools = append(s.Tools, k.Verifier())
	}
	return s
}

// ReceiptSamples returns valid packs with receipts of tools.
func ReceiptSamples(t testing.TB) []ReceiptSample {
	t.Helper()
	l := NewReceiptLog(t)
	payments, next, mail := ToolKey(t, payments, 0), ToolKey(t, payments, 1), ToolKey(t, mail, 2)
	plain := NewLog(t)
	plain.Append(EventSpec{Tool: "acme.orders.read", Judged: true})
	from, to := "1", "1"
	return []ReceiptSample{
		receiptSample(l, "without a key", nil),
		receiptSample(l, "under the key of a tool", nil, payments),
		receiptSample(l, "under the keys of two tools", nil, mail, payments),
		receiptSample(l, "under two keys of a tool", nil, next, payments),
		receiptSample(l, "without envelopes, under a key", func(a *Selection) { a.Request.Envelopes = false }, payments),
		receiptSample(l, "cut between an act and its result", func(a *Selection) { a.End, a.Request.To = 1, &to }, payments),
		receiptSample(l, "cut before the act of a result", func(a *Selection) { a.Begin, a.Request.From = 1, &from }, payments),
		receiptSample(plain, "none, under a key", nil, payments),
	}
}

// WrongReceipts returns valid packs with a wrong receipt of a tool whose key is given.
func WrongReceipts(t testing.TB) (all []ReceiptSample) {
	t.Helper()
	tool, next := ToolKey(t, payments, 0), ToolKey(t, payments, 1)
	add := func(name string, approved bool, change func(*grant.Receipt)) {
		l := &receiptLog{Log: NewLog(t)}
		l.call(true, "ok", &tool, nil)
		l.call(approved, "ok", &tool, change)
		all = append(all, receiptSample(l.Log, name, nil, next, tool))
	}
	add("for another organization", false, func(r *grant.Receipt) { r.Organization[0]++ })
	add("for another agent", false, func(r *grant.Receipt) { r.Agent = "agt_2" })
	add("for another tool", false, func(r *grant.Receipt) { r.Tool = "acme.mail.send" })
	add("for another act", false, func(r *grant.Receipt) { r.ActionDigest[0]++ })
	add("for another approval", true, func(r *grant.Receipt) { r.Approval = "apr_1" })
	add("for another grant", true, func(r *grant.Receipt) { r.Nonce = grant.Nonce{1} })
	add("for an act without its approval", true, func(r *grant.Receipt) { r.Approval, r.Nonce, r.Intent = "", grant.Nonce{}, "call_2" })
	add("for another intent", false, func(r *grant.Receipt) { r.Intent = "call_1" })
	add("for an act with an approval that it does not have", false, func(r *grant.Receipt) { r.Approval = "apr_1" })

	note := ""
	for _, approval := range []string{"", "apr_1"} {
		l := NewLog(t)
		for n, name := range []id.Event{"call_1", "call_2"} { // the same call twice, because it has no salt
			e := l.Append(EventSpec{ID: name, Tool: "acme.payments.refund", Judged: true, Payload: map[string]any{"phase": "intent"}}).Envelope
			if n == 0 {
				r := grant.Receipt{Organization: e.OrganizationID, Agent: e.AgentID, Tool: e.Tool, Status: 200, Approval: approval,
					ActionDigest: grant.ActionOf(e).WithoutSubject().Digest()}
				if approval == "" {
					r.Intent = name
				}
				signed, err := grant.SignReceipt(r, tool)
				if err != nil {
					t.Fatal(err)
				}
				note = string(signed)
			}
			result := map[string]any{"phase": "result", "receipt": note}
			if approval != "" {
				result["approval_id"], result["grant_nonce"] = approval, strings.Repeat("0", 32)
			}
			l.Append(EventSpec{Tool: "acme.payments.refund", Intent: name, Payload: result})
		}
		all = append(all, receiptSample(l, "of two acts, approval "+strconv.Quote(approval), nil, tool))
	}
	forged := func(name, note string) {
		l := NewLog(t)
		l.Append(EventSpec{ID: "call_1", Tool: "acme.payments.refund", Judged: true, Payload: map[string]any{"phase": "intent"}})
		l.Append(EventSpec{Tool: "acme.payments.refund", Intent: "call_1", Payload: map[string]any{"phase": "result", "receipt": note}})
		all = append(all, receiptSample(l, name, nil, tool))
	}
	forged("with another status than the tool signed", strings.Replace(note, "\n200\n", "\n201\n", 1))
	forged("cut off", note[:len(note)-2])
	forged("of no note", "agentledger/receipt/v1\n")
	return all
}
