package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// dailyBudget denies beyond 100 USD in a minute.
const dailyBudget = `[{"rule_id":"budget","tool":"bank.**","decision":"deny","reason":"spent",
	"limit":{"limit_id":"budget","sum":"amount","currency":"USD","by":"organization","window_seconds":60,"max":100}}]`

func payment(amount any) fields {
	return fields{"action_kind": "tool_call", "tool_name": "bank.pay", "payload": fields{"amount": amount, "currency": "USD"}}
}

// pays sends a payment and returns "before+added decision".
func (w *world) pays(m *member, name string, change fields) string {
	w.Helper()
	a := w.mustCreate(m, name, change)
	r := w.record(m)
	told, _ := a.fields["policy_decision"].(string)
	if told != "" && told != r.Policy.Effective.String() {
		w.Errorf("%s: the answer says %s, the record %s", name, told, r.Policy.Effective)
	}
	return string(r.Policy.Limits) + " " + r.Policy.Effective.String() + " " + r.Policy.RuleID
}

func (w *world) asks(m *member, amount any) string {
	w.Helper()
	q := fmt.Sprintf(`{"organization_id":%q,"agent_id":%q,"tool_name":"bank.pay","payload":{"amount":%v,"currency":"USD"}}`, m.id, m.agent.Agent, amount)
	a := w.post(evaluatePath, m.token, q)
	w.expect(a, http.StatusOK, "")
	return fmt.Sprint(a.fields["decision"], " ", a.fields["rule_id"])
}

func tallied(before, added string) string {
	return fmt.Sprintf(`[{"added":%q,"before":%q,"limit_id":"budget"}]`, added, before)
}

// The life of a budget: which events count, which do not, and when they leave the window.
func TestLimit(t *testing.T) {
	w := newWorld(t)
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "p", dailyBudget)
	}
	declared := payment(5)
	declared["policy_decision"] = "deny"
	euros, negative := payment(1), payment(-1)
	euros["payload"] = fields{"amount": 1, "currency": "EUR"}
	steps := []struct {
		name   string
		change fields
		want   string
	}{
		{"first", payment(60.5), tallied("0", "60.5") + " allow default"},
		{"as text", payment("39.4"), tallied("60.5", "39.4") + " allow default"},
		{"too much", payment(0.11), tallied("99.9", "0.11") + " deny budget"},
		{"refused before", declared, tallied("99.9", "5") + " deny budget"},
		{"not dollars", euros, "[] deny budget"},
		{"negative", negative, "[] deny budget"},
		{"the last", payment(0.1), tallied("99.9", "0.1") + " allow default"},
		{"nothing left", payment(0.01), tallied("100", "0.01") + " deny budget"},
	}
	for _, s := range steps {
		if got := w.pays(&w.red, strings.ReplaceAll(s.name, " ", "-"), s.change); got != s.want {
			t.Errorf("%s: got %s, want %s", s.name, got, s.want)
		}
	}
	w.expectReplayed(w.send(&w.red, w.envelope(&w.red, "first", payment(60.5))), "first")
	for m, want := range map[*member]string{&w.red: "deny budget", &w.blue: "allow default"} {
		for range 3 {
			if got := w.asks(m, 100); got != want {
				t.Errorf("evaluate: got %s, want %s", got, want)
			}
		}
	}
	w.activate(&w.red, "another", dailyBudget)
	if got, want := w.pays(&w.red, "next-policy", payment(1)), tallied("100", "1")+" deny budget"; got != want {
		t.Errorf("under another policy: got %s, want %s", got, want)
	}
	w.Pass(time.Minute)
	if got := w.asks(&w.red, 100); got != "allow default" {
		t.Errorf("a minute later: got %s", got)
	}
	if got, want := w.pays(&w.red, "later", payment(100)), tallied("0", "100")+" allow default"; got != want {
		t.Errorf("a minute later: got %s, want %s", got, want)
	}
}

// A hundred concurrent senders in each organization, half of them with batches: the limit is never exceeded, and each
// record follows from the earlier ones.
func TestLimitUnderConcurrency(t *testing.T) {
	w := newWorld(t)
	rules := strings.Replace(dailyBudget, `"max":100`, `"max":30`, 1)
	for _, m := range []*member{&w.red, &w.blue} {
		w.activate(m, "p", rules)
	}
	var group sync.WaitGroup
	for i := range 100 {
		for _, m := range []*member{&w.red, &w.blue} {
			group.Go(func() {
				text := w.envelope(m, fmt.Sprint("e", i), payment(1))
				if i%2 == 0 {
					w.expect(w.send(m, text), http.StatusCreated, "")
					return
				}
				if got := w.batch(m, text).statuses(); got[http.StatusCreated] != 1 {
					t.Errorf("batch: got %v", got)
				}
			})
		}
	}
	group.Wait()
	for _, m := range []*member{&w.red, &w.blue} {
		w.chained(m, 30)
	}
}

// chained checks the tallies of a member's payments of 1 in one window.
func (w *world) chained(m *member, most int) {
	w.Helper()
	s, spent := w.State(w.TB, m.tenant), 0
	for e, err := range w.Ledgers.Events(context.Background(), s, 0, s.Size(), storage.FieldRecord) {
		if err != nil {
			w.Fatal(err)
		}
		r, err := event.ParseRecord(e.Record)
		if err != nil {
			w.Fatal(err)
		}
		if e.Tool == "" {
			continue
		}
		want := id.Allow
		if spent == most {
			want = id.Deny
		}
		if got := string(r.Policy.Limits); got != tallied(fmt.Sprint(spent), "1") || r.Policy.Effective != want || e.Effective != want {
			w.Errorf("#%d: got %s %s, want before %d and %s", r.SequenceNum, got, r.Policy.Effective, spent, want)
		}
		if r.Policy.Effective == id.Allow {
			spent++
		}
	}
	if spent != most {
		w.Errorf("got %d allowed, want %d", spent, most)
	}
}

// The lines of a batch are judged in their order.
func TestLimitInABatch(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "p", dailyBudget)
	var lines []string
	for i, amount := range []int{50, 60, 30, 30, 20} {
		lines = append(lines, w.envelope(&w.red, fmt.Sprint("l", i), payment(amount)))
	}
	for i, line := range w.batch(&w.red, strings.Join(lines, "\n")).lines {
		denied := i == 1 || i == 3
		if got := strings.Contains(line, `"policy_decision":"deny"`); got != denied || status(line) != http.StatusCreated {
			t.Errorf("line %d: got %s, want denied %v", i, line, denied)
		}
	}
}

// Beyond a limit that requires approval, an approval is requested, and events that need approval count.
func TestLimitThatObliges(t *testing.T) {
	w := newWorld(t)
	w.activate(&w.red, "p", `[{"rule_id":"busy","tool":"bank.**","decision":"allow_with_obligation","obligations":[{"type":"human_approval"}],
		"limit":{"limit_id":"budget","count":true,"by":"agent","window_seconds":60,"max":1}}]`)
	if got := w.asks(&w.red, 1); got != "allow default" {
		t.Errorf("the first: got %s", got)
	}
	question := fmt.Sprintf(`{"organization_id":%q,"agent_id":%q,"tool_name":"bank.pay","payload":{}}`, w.red.id, w.red.agent.Agent)
	w.expect(w.post("/v1/ingest/approvals", w.red.token, question), http.StatusUnprocessableEntity, "No approval is needed or possible: the policy's decision is allow")
	for i, want := range []string{tallied("0", "1") + " allow default", tallied("1", "1") + " allow_with_obligation busy", tallied("2", "1") + " allow_with_obligation busy"} {
		if got := w.pays(&w.red, fmt.Sprint("e", i), payment(1)); got != want {
			t.Errorf("event %d: got %s, want %s", i, got, want)
		}
	}
	if got := w.asks(&w.red, 1); got != "allow_with_obligation busy" {
		t.Errorf("the next: got %s", got)
	}
	w.expect(w.post("/v1/ingest/approvals", w.red.token, question), http.StatusCreated, "")
}
