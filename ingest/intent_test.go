package ingest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/ingest"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/log"
)

const wantsApproval = "X-Request-Approval: 1"

// intent is an intent for a tool.
func intent(tool string) fields {
	return fields{"action_kind": "tool_call", "tool_name": tool,
		"payload": fields{"phase": "intent", "call_id": "c", "salt": "00112233445566778899aabbccddeeff", "amount": 7}}
}

// told is the decision and the approval in an answer.
func told(f fields) string {
	text, _ := f["policy_decision"].(string)
	if approval, ok := f["approval"].(map[string]any); ok {
		text += " " + approval["status"].(string)
		if approval["approval_id"] != f["approval_id"] {
			text += " by another name"
		}
	}
	return text
}

// line returns the members of a line of a batch's answer.
func line(t *testing.T, b batched, n int) (f fields) {
	t.Helper()
	if err := json.Unmarshal([]byte(b.lines[n]), &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// Each event is sent twice, alone and in a batch: with the header, by a key with the option, and without either.
func TestIntentCarriesItsApproval(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	asks := w.red
	asks.token = w.ingestKey(&w.red, org.WantedKey{Asks: true})
	declared := but(intent("acme.ask"), fields{"policy_decision": "allow_with_obligation"})
	for n, row := range []struct {
		name          string
		change        fields
		header        bool
		by            *member
		first, second string
	}{
		{"allowed", intent("acme.allow"), true, &w.red, "", "allow"},
		{"denied", intent("acme.deny"), true, &w.red, "deny", "deny"},
		{"needs approval", intent("acme.ask"), true, &w.red, "allow_with_obligation pending", "allow_with_obligation pending"},
		{"nobody wants it", intent("acme.ask"), false, &w.red, "allow_with_obligation", "allow_with_obligation"},
		{"declared and asked", declared, true, &w.red, "allow_with_obligation pending", "allow_with_obligation pending"},
		{"declared alone", but(intent("acme.allow"), fields{"policy_decision": "allow_with_obligation"}), true, &w.red, "", "allow_with_obligation"},
		{"declared denial", but(intent("acme.ask"), fields{"policy_decision": "deny"}), true, &w.red, "", "deny"},
		{"without a phase", but(intent("acme.ask"), fields{"payload": fields{}}), true, &w.red, "allow_with_obligation pending", "allow_with_obligation pending"},
		{"without a tool", but(intent("acme.ask"), fields{"tool_name": nil}), true, &w.red, "", ""},
		{"a key that asks", intent("acme.ask"), false, &asks, "allow_with_obligation pending", "allow_with_obligation pending"},
		{"a key that asks, allowed", intent("acme.allow"), false, &asks, "", "allow"},
		{"a key that asks, and no intent", but(intent("acme.ask"), fields{"payload": fields{}}), false, &asks, "allow_with_obligation", ""},
		{"another phase", but(intent("acme.ask"), fields{"payload": fields{"phase": "x", "a": `"phase":"intent"`}}), false, &asks, "allow_with_obligation", ""},
	} {
		var headers []string
		if row.header {
			headers = append(headers, wantsApproval)
		}
		single := w.envelope(&w.red, fmt.Sprint("single-", n), row.change)
		one, again := w.send(row.by, single, headers...), w.send(row.by, single, headers...)
		if w.expect(one, 201, ""); again.Code != 200 {
			t.Errorf("%s: again: got %d %s", row.name, again.Code, again.Body)
		}
		if got := [2]string{told(one.fields), told(again.fields)}; got != [2]string{row.first, row.second} {
			t.Errorf("%s: got %q, want %q and %q", row.name, got, row.first, row.second)
		}
		if one.fields["approval_id"] != again.fields["approval_id"] {
			t.Errorf("%s: another approval for the same event: %s, %s", row.name, one.Body, again.Body)
		}
		batched := w.envelope(&w.red, fmt.Sprint("batch-", n), row.change)
		b := w.batch(row.by, ndjson(batched, batched), headers...)
		if got := [2]string{told(line(t, b, 0)), told(line(t, b, 1))}; got != [2]string{row.first, row.second} {
			t.Errorf("%s in a batch: got %q, want %q and %q", row.name, got, row.first, row.second)
		}
		if row.header && row.first != "" && one.fields["reason"] == nil {
			t.Errorf("%s: no reason: %s", row.name, one.Body)
		}
	}
	if n := w.State(t, w.blue.tenant).Size(); n != 0 {
		t.Errorf("the other organization has %d events", n)
	}
}

// Errors of the request are reported before anything is stored.
func TestApprovalHeaderRefused(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	before := w.State(t, w.red.tenant).Size()
	events := w.red
	events.token = w.ingestKey(&w.red, org.WantedKey{Scopes: 1 << org.ScopeEvents})
	before++ // the key
	for name, c := range map[string]struct {
		by      *member
		headers []string
		status  int
		message string
	}{
		"no scope":    {&events, []string{wantsApproval}, 403, "The ingest key does not have the scope approvals"},
		"other value": {&w.red, []string{"X-Request-Approval: yes"}, 422, "X-Request-Approval must be 1"},
		"empty":       {&w.red, []string{"X-Request-Approval: "}, 422, "X-Request-Approval must be 1"},
	} {
		one := w.envelope(&w.red, "refused", intent("acme.ask"))
		a := w.send(c.by, one, c.headers...)
		if a.Code != c.status || a.fields["error"] != c.message {
			t.Errorf("%s: got %d %s, want %d %s", name, a.Code, a.Body, c.status, c.message)
		}
		if b := w.batch(c.by, ndjson(one), c.headers...); b.Code != c.status || !strings.Contains(b.Body.String(), c.message) {
			t.Errorf("%s in a batch: got %d %s", name, b.Code, b.Body)
		}
	}
	w.expect(w.send(&w.red, w.envelope(&w.red, "twice", intent("acme.ask")), wantsApproval, wantsApproval), 422, "X-Request-Approval must be 1")
	if got := w.State(t, w.red.tenant).Size(); got != before {
		t.Errorf("size: got %d, want %d", got, before)
	}
}

// An event keeps its approval in every state.
func TestIntentAsksOnce(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	envelope := w.envelope(&w.red, "refund", intent("acme.ask"))
	first := w.send(&w.red, envelope, wantsApproval)
	w.expect(first, http.StatusCreated, "")
	approval := first.fields["approval"].(map[string]any)
	path, digest := approvalsPath+"/"+approval["approval_id"].(string), approval["action_digest"].(string)
	action := grant.Action{Organization: w.red.id, Agent: w.red.agent.Agent, Tool: "acme.ask",
		Payload: []byte(`{"amount":7,"call_id":"c","phase":"intent","salt":"00112233445566778899aabbccddeeff"}`)}
	if want := action.Digest().String(); digest != want {
		t.Errorf("action digest: got %s, want %s", digest, want)
	}
	same := func(status string) {
		t.Helper()
		a := w.send(&w.red, envelope, wantsApproval)
		if a.Code != 200 || told(a.fields) != "allow_with_obligation "+status || a.fields["approval_id"] != approval["approval_id"] {
			t.Errorf("got %d %s, want %s %s", a.Code, a.Body, approval["approval_id"], status)
		}
	}
	same("pending")
	w.agree(&w.red, path, digest, "acc_1", "acc_2")
	same("approved")
	other := w.red
	other.token = w.ingestKey(&w.red, org.WantedKey{})
	w.expect(w.send(&other, envelope, wantsApproval), 409, "The event is stored without its approval: Another ingest key requested the approval of this event")
	if a := w.send(&other, envelope); a.Code != 200 || told(a.fields) != "allow_with_obligation" {
		t.Errorf("another key that does not ask: got %d %s", a.Code, a.Body)
	}
	w.expect(w.post(path+"/consume", w.red.token, claim(&w.red, path, digest)), 200, "")
	same("consumed")
	w.Pass(2 * time.Hour)
	same("consumed")
	twin := w.mustCreate(&w.red, "twin", but(intent("acme.ask"), fields{"trace_id": "trace-refund"}), wantsApproval)
	if twin.fields["approval_id"] == approval["approval_id"] {
		t.Error("another event with the same action has the same approval")
	}
}

// A limit counts the intent once: its own amount does not turn the request for approval into a denial.
func TestIntentIsNotCountedAgain(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "p", `[{"rule_id":"most","tool":"bank.**","decision":"deny",
		"limit":{"limit_id":"most","sum":"amount","currency":"USD","by":"organization","window_seconds":60,"max":100}},
		{"rule_id":"ask","tool":"bank.**","decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":1}]}]`)
	pay := phased("intent", "c", 60, "")
	if a := w.mustCreate(&w.red, "pay", pay, wantsApproval); told(a.fields) != "allow_with_obligation pending" {
		t.Errorf("got %s", a.Body)
	}
	if a := w.mustCreate(&w.red, "more", pay, wantsApproval); told(a.fields) != "deny" {
		t.Errorf("beyond the limit: got %s", a.Body)
	}
	result := phased("result", "c", 60, "pay")
	if a := w.mustCreate(&w.red, "done", result, wantsApproval); told(a.fields) != "allow_with_obligation" {
		t.Errorf("a result: got %s, want no approval", a.Body)
	}
	if a := w.mustCreate(&w.red, "rest", phased("intent", "d", 40, ""), wantsApproval); told(a.fields) != "allow_with_obligation pending" {
		t.Errorf("the rest: got %s", a.Body)
	}
}

// If the policy changes between event and question, no approval is requested for a decision that no longer holds.
func TestPolicyChangesBeforeTheQuestion(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	envelope := w.envelope(&w.red, "late", intent("acme.ask"))
	w.expect(w.send(&w.red, envelope), 201, "")
	w.activate(&w.red, "pol-2", `[{"rule_id":"no","tool":"acme.ask","decision":"deny"}]`)
	const message = "The event is stored without its approval: No approval is needed or possible: the policy's decision is deny"
	w.expect(w.send(&w.red, envelope, wantsApproval), 409, message)
	if b := w.batch(&w.red, ndjson(envelope), wantsApproval); status(b.lines[0]) != 409 || !strings.Contains(b.lines[0], message) {
		t.Errorf("in a batch: got %s", b.Body)
	}
	w.activate(&w.red, "pol-3", rules)
	if a := w.send(&w.red, envelope, wantsApproval); told(a.fields) != "allow_with_obligation pending" {
		t.Errorf("asked for again: got %s", a.Body)
	}
}

// A batch requests a bounded number of approvals. Further lines are stored, and may be retried alone to request
// theirs.
func TestBatchAsksForSome(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	var lines []string
	for n := range 34 {
		lines = append(lines, w.envelope(&w.red, fmt.Sprint("e-", n), intent("acme.ask")))
	}
	b := w.batch(&w.red, ndjson(lines...), wantsApproval)
	if got := b.statuses(); got[201] != 32 || got[429] != 2 {
		t.Errorf("got %v", got)
	}
	const want = `{"status_code":429,"error":"The event is stored without its approval: a batch may request at most 32 approvals: send the event again","code":"rate_limited"}`
	if b.lines[33] != want {
		t.Errorf("got %s, want %s", b.lines[33], want)
	}
	if a := w.send(&w.red, lines[33], wantsApproval); a.Code != 200 || told(a.fields) != "allow_with_obligation pending" {
		t.Errorf("alone: got %d %s", a.Code, a.Body)
	}
}

// moody fails to request approvals while it has an error.
type moody struct {
	ingest.Approvals
	err error
}

func (m *moody) Ask(ctx context.Context, t id.Tenant, q approval.Question) (approval.Approval, bool, error) {
	if m.err != nil {
		return approval.Approval{}, false, m.err
	}
	return m.Approvals.Ask(ctx, t, q)
}

// If an event was stored but its approval could not be requested, a retry requests it.
func TestQuestionFailsAfterTheAppend(t *testing.T) {
	var approvals *moody
	w := newWorld(t, func(o *ingest.Options) { approvals = &moody{Approvals: o.Approvals}; o.Approvals = approvals })
	w.activate(&w.red, "pol-1", rules)
	for n, c := range []struct {
		err     error
		status  int
		message string
	}{
		{&fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "Approvals can't be read"}, 503, "The event is stored without its approval: Approvals can't be read"},
		{&fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: "Too many"}, 503, "The event is stored without its approval: Too many"},
		{&fault.Error{Kind: fault.RateLimited, Code: "rate_limited", Message: "full", RetryAfter: time.Minute}, 429, "The event is stored without its approval: full"},
		{&fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", Message: "?"}, 503, "The event is stored, its approval may be asked for; retry with the same event_id"},
		{context.DeadlineExceeded, 503, "The event is stored without its approval: The request ended before its response"},
		{fault.New(fault.Invalid, "Unknown agent"), 409, "The event is stored without its approval: Unknown agent"},
		{errors.New("a cause"), 500, "Internal error"},
	} {
		approvals.err = c.err
		envelope := w.envelope(&w.red, fmt.Sprint("e-", n), intent("acme.ask"))
		size := w.State(t, w.red.tenant).Size()
		for range 2 {
			w.expect(w.send(&w.red, envelope, wantsApproval), c.status, c.message)
			if b := w.batch(&w.red, ndjson(envelope), wantsApproval); status(b.lines[0]) != c.status || !strings.Contains(b.lines[0], c.message) {
				t.Errorf("%v in a batch: got %s", c.err, b.Body)
			}
		}
		if got := w.State(t, w.red.tenant).Size(); got != size+1 {
			t.Errorf("%v: %d events were stored, want 1", c.err, got-size)
		}
		approvals.err = nil
		if a := w.send(&w.red, envelope, wantsApproval); a.Code != 200 || told(a.fields) != "allow_with_obligation pending" {
			t.Errorf("%v: sent again: got %d %s", c.err, a.Code, a.Body)
		}
	}
}

// An erased event gets no approval, because the approval would store its payload again.
func TestErasedIntentAsksForNothing(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "pol-1", rules)
	envelope := w.envelope(&w.red, "erased", intent("acme.ask"))
	w.expect(w.send(&w.red, envelope), 201, "")
	at := w.State(t, w.red.tenant).Size() - 1
	_, err := w.SystemEvents.Append(t.Context(), w.red.tenant, sysevent.Operator, func(context.Context, *log.State) (sysevent.Change, error) {
		return sysevent.Change{Statements: []sysevent.Statement{{
			Kind: sysevent.EnvelopeErased, Payload: map[string]any{}, Erases: []id.Range{{Begin: at, End: at + 1}},
		}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.expect(w.send(&w.red, envelope, wantsApproval), 409, "The event is stored without its approval: the event is erased")
	if a := w.send(&w.red, envelope); a.Code != 200 || told(a.fields) != "allow_with_obligation" {
		t.Errorf("its decision: got %d %s", a.Code, a.Body)
	}
}
