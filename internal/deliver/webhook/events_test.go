package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// record appends an event of an agent with a policy decision.
func (h *house) record(tenant id.Tenant, name string, effective id.Decision) {
	h.t.Helper()
	a := ledgertest.NewAgent()
	e := a.Envelope(h.t, tenant, name, map[string]any{"secret": "s3cret-payload"})
	statement := a.Attestation(e)
	statement.Policy = event.Policy{Declared: id.Allow, Effective: effective, RuleID: "r1"}
	_, err := h.Ledgers.Append(h.t.Context(), tenant, func(_ context.Context, s *log.State) (log.Submission, error) {
		return log.Submission{Drafts: []log.Draft{log.NewDraft(s.Identity(), e, statement)}}, nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// follow writes the due notices of events and their deliveries.
func (h *house) follow() {
	h.t.Helper()
	logger := slog.New(slog.NewTextHandler(h.t.Output(), nil))
	for range 3 {
		if err := h.sender.SweepEvents(h.t.Context(), logger); err != nil {
			h.t.Fatal(err)
		}
		h.settle()
	}
	h.deliver()
}

// settle waits for work in flight.
func (h *house) settle() {
	ended, cancel := context.WithCancel(h.t.Context())
	cancel()
	h.sender.Run(ended, slog.New(slog.DiscardHandler))
}

func wanting(names ...string) func(*webhook.EndpointPatch) {
	return func(p *webhook.EndpointPatch) { p.Events = &names }
}

// got returns the types of the deliveries since the last call, by receiver.
func (h *house) got() map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := map[string][]string{}
	for _, c := range h.calls {
		var body struct {
			Type, Text string
			Data       struct {
				Event string `json:"event_id"`
			}
		}
		if err := json.Unmarshal([]byte(c.body), &body); err != nil {
			h.t.Error(err)
		}
		line := strings.TrimSpace(body.Type + " " + body.Data.Event)
		if body.Text != "" {
			line = body.Text
		}
		name := strings.TrimSuffix(strings.TrimPrefix(c.address, "https://"), ".example/")
		all[name] = append(all[name], line)
		if strings.Contains(c.body, "s3cret-payload") {
			h.t.Errorf("a payload in %s", c.body)
		}
	}
	h.calls = nil
	for _, one := range all {
		slices.Sort(one)
	}
	return all
}

func (h *house) wantGot(what string, want map[string][]string) {
	h.t.Helper()
	if got := h.got(); fmt.Sprint(got) != fmt.Sprint(want) {
		h.t.Errorf("%s: got %v\nwant %v", what, got, want)
	}
}

// The endpoints that get an event's notices, in both formats; another organization's endpoints get nothing.
func TestNoticesOfEvents(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		h.record(red, "evt-before", id.Deny)
		h.create(red, "https://stored.example/", wanting("event.stored"), func(p *webhook.EndpointPatch) { p.Agents = &[]id.Agent{"agt_test"} })
		h.create(red, "https://denied.example/", wanting("decision.denied"))
		h.create(red, "https://family.example/", wanting("decision.*"))
		h.create(red, "https://tool.example/", wanting("decision.*", "event.*"), func(p *webhook.EndpointPatch) { p.Tools = &[]string{"other.**"} })
		h.create(red, "https://agent.example/", wanting("decision.*"), func(p *webhook.EndpointPatch) { p.Agents = &[]id.Agent{"agt_other"} })
		h.create(red, "https://approvals.example/")
		h.create(red, "https://slack.example/", wanting("event.*", "decision.*"), func(p *webhook.EndpointPatch) {
			p.Format, p.Tools = ptr(webhook.FormatSlack), &[]string{"acme.**"}
		})
		h.create(blue, "https://blue.example/", wanting("event.*", "decision.*", "plan.*", "ledger.*"), func(p *webhook.EndpointPatch) { p.Agents = &[]id.Agent{"agt_test"} })
		h.record(red, "evt-allowed", id.Allow)
		h.record(red, "evt-denied", id.Deny)
		h.record(red, "evt-bound", id.AllowWithObligation)
		h.follow()
		h.wantGot("events", map[string][]string{
			"stored": {"event.stored evt-allowed", "event.stored evt-bound", "event.stored evt-denied"},
			"denied": {"decision.denied evt-denied"},
			"family": {"decision.denied evt-denied", "decision.tightened evt-bound", "decision.tightened evt-denied"},
			"slack": {
				"agt_test: acme.orders.read is denied by rule r1",
				"agt_test: acme.orders.read was declared allow and is allow_with_obligation by rule r1",
				"agt_test: acme.orders.read was declared allow and is deny by rule r1",
				"agt_test: acme.orders.read was recorded (allow)", "agt_test: acme.orders.read was recorded (allow_with_obligation)",
				"agt_test: acme.orders.read was recorded (deny)",
			},
		})
		h.follow()
		h.wantGot("again", nil)
	})
}

func TestDataOfAnEvent(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.create(red, "https://a.example/", wanting("decision.denied"))
	h.record(red, "evt-denied", id.Deny)
	h.follow()
	if len(h.calls) != 1 {
		t.Fatalf("got %d calls", len(h.calls))
	}
	e, err := h.Ledgers.Event(t.Context(), h.State(t, red), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := `"data":{"event_id":"evt-denied","log_index":` + fmt.Sprint(e.Index) + `,"received_at":"2026-11-20T12:00:00.000Z","agent_id":"agt_test",` +
		`"signer":"agent","tool_name":"acme.orders.read","action_kind":"tool_call","trace_id":"trc","actor_principal":"svc",` +
		`"declared":"allow","effective":"deny","policy_id":null,"rule_id":"r1"}}`
	if !strings.HasSuffix(h.calls[0].body, want) {
		t.Errorf("got %s\nwant %s", h.calls[0].body, want)
	}
}

// Plan thresholds and the ledger's fault are notified once each, regardless of an endpoint's filters.
func TestNoticesOfPlanAndLedger(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		h.create(red, "https://a.example/", wanting("plan.threshold", "ledger.fault"), func(p *webhook.EndpointPatch) {
			p.Tools, p.Agents = &[]string{"acme.**"}, &[]id.Agent{"agt_test"}
		})
		h.create(red, "https://slack.example/", wanting("plan.*", "ledger.*"), func(p *webhook.EndpointPatch) { p.Format = ptr(webhook.FormatSlack) })
		h.create(blue, "https://blue.example/", wanting("plan.*", "ledger.*"))
		for i, tc := range []struct {
			used, limit uint64
			want        map[string][]string
		}{
			{79, 100, nil},
			{80, 100, map[string][]string{"a": {"plan.threshold"}, "slack": {"80 % of the plan's events of 2026-11 are used: 80 of 100"}}},
			{99, 100, nil},
			{100, 100, map[string][]string{"a": {"plan.threshold"}, "slack": {"100 % of the plan's events of 2026-11 are used: 100 of 100"}}},
			{101, 0, nil},
		} {
			h.used, h.limit = tc.used, tc.limit
			h.record(red, fmt.Sprint("evt-", i), id.Allow)
			h.follow()
			h.wantGot(fmt.Sprint(tc.used, " of ", tc.limit), tc.want)
		}
		if err := h.Ledgers.Freeze(t.Context(), red, "the operator's own words"); err != nil {
			t.Fatal(err)
		}
		h.follow()
		h.wantGot("frozen", map[string][]string{"a": {"ledger.fault"}, "slack": {"The ledger has a fault (frozen): ask the operator of the service"}})
		h.follow()
		h.wantGot("again", nil)
	})
}

// A receiver that is down has at most 1,000 waiting notices of events. The position waits, and in the end each event
// was notified at least once.
func TestNoticesThatWaitAreBounded(t *testing.T) {
	h := newHouse(t, enginetest.Pebble(t))
	h.create(red, "https://down.example/", wanting("event.stored"), func(p *webhook.EndpointPatch) { p.Agents = &[]id.Agent{"agt_test"} })
	h.create(red, "https://up.example/", wanting("event.stored"), func(p *webhook.EndpointPatch) { p.Agents = &[]id.Agent{"agt_test"} })
	h.mu.Lock()
	h.answer = func(address string) (egress.Answer, error) {
		if strings.Contains(address, "down") {
			return egress.Answer{Status: 500}, nil
		}
		return egress.Answer{Status: 200}, nil
	}
	h.mu.Unlock()
	const n = 1500
	for i := range n {
		h.record(red, fmt.Sprintf("evt-%04d", i), id.Allow)
	}
	received := map[string]map[string]bool{"up": {}, "down": {}}
	note := func() {
		for name, all := range h.got() {
			for _, one := range all {
				received[name][one] = true
			}
		}
	}
	drain := func() { // all that is due now
		h.follow()
		for before := -1; before != h.count(); {
			before = h.count()
			h.deliver()
		}
		note()
	}
	for range 3 {
		drain()
		h.pass(11 * time.Second)
	}
	found, err := h.Engine.Scan(t.Context(), red, "outbox", "", "", 5000)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1000 || len(received["up"]) != n || len(received["down"]) != 1000 {
		t.Errorf("%d wait, told of %d and %d events, want 1000, %d and 1000", len(found), len(received["up"]), len(received["down"]), n)
	}
	h.answerWith(200)
	clear(received["down"])
	for range 3 {
		h.pass(10 * time.Minute)
		drain()
	}
	if len(received["down"]) != n {
		t.Errorf("after its return the receiver was told of %d events, want %d", len(received["down"]), n)
	}
}

// A process that dies before or after any write notifies of each event at least once.
func TestNoticesAfterDeaths(t *testing.T) {
	for _, after := range []bool{false, true} {
		for n := 0; ; n++ {
			h := newHouse(t, enginetest.Pebble(t))
			h.create(red, "https://a.example/", wanting("decision.denied"))
			for i := range 3 {
				h.record(red, fmt.Sprint("evt-", i), id.Deny)
			}
			store := &enginetest.Mortal{Engine: h.Engine}
			store.DieAt(n, after)
			h.openOn(store)
			logger := slog.New(slog.DiscardHandler)
			_ = h.sender.SweepEvents(t.Context(), logger) // the store may have failed
			h.settle()
			_ = h.sender.Sweep(t.Context(), logger)
			h.settle()
			h.openOn(h.Engine)
			h.pass(time.Hour)
			h.Pass(time.Hour)
			h.follow()
			h.deliver()
			if got := slices.Compact(h.got()["a"]); len(got) != 3 {
				t.Fatalf("death at write %d, after it %v: got %v", n, after, got)
			}
			if !store.Dead() {
				if n < 5 {
					t.Errorf("only %d writes were tried", n)
				}
				break
			}
		}
	}
}

// An endpoint that is enabled again is notified only of later events, and one that is unsubscribed leaves no records.
func TestFollowingEnds(t *testing.T) {
	eachHouse(t, func(t *testing.T, h *house) {
		name := h.create(red, "https://a.example/", wanting("decision.denied"))
		change := func(p webhook.EndpointPatch) {
			t.Helper()
			if _, err := h.sender.ChangeEndpoint(t.Context(), red, "acc_ann", name, p); err != nil {
				t.Fatal(err)
			}
		}
		change(webhook.EndpointPatch{Active: ptr(false)})
		h.record(red, "evt-off", id.Deny)
		h.follow()
		h.wantGot("off", nil)
		change(webhook.EndpointPatch{Active: ptr(true)})
		h.record(red, "evt-on", id.Deny)
		h.follow()
		h.wantGot("on", map[string][]string{"a": {"decision.denied evt-on"}})
		change(webhook.EndpointPatch{Events: &[]string{"run.*"}})
		h.wantNothingFollowed()
		change(webhook.EndpointPatch{Events: &[]string{"decision.denied", "plan.*"}})
		h.used, h.limit = 9, 10
		h.record(red, "evt-again", id.Deny)
		h.follow()
		h.wantGot("again", map[string][]string{"a": {"decision.denied evt-again", "plan.threshold"}})
		if err := h.sender.DeleteEndpoint(t.Context(), red, "acc_ann", name); err != nil {
			t.Fatal(err)
		}
		h.wantNothingFollowed()
	})
}

func (h *house) wantNothingFollowed() {
	h.t.Helper()
	for _, kind := range []string{"webhook_position", "webhook_told"} {
		if left, err := h.Engine.Scan(h.t.Context(), red, storage.Kind(kind), "", "", 10); err != nil || len(left) > 0 {
			h.t.Errorf("%s: got %v, %v", kind, left, err)
		}
	}
}
