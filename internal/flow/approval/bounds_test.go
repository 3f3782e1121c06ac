package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/storage"
)

func TestTooManyOpen(t *testing.T) {
	w := newWorld(t)
	q := w.question(red)
	agents := []id.Agent{q.Agent}
	for range 4 {
		agents = append(agents, w.anotherAgent(red))
	}
	fill := func(who id.Agent, key string) {
		q.Agent, q.IngestKeyID = who, key
		for i := range approval.MaxOpenByAgent {
			q.Trace = id.Trace("trc_" + strings.Repeat("x", 1+i%100) + string(rune('a'+i/100)))
			w.ask(red, q)
		}
	}
	fill(agents[0], "ik_only_operator")
	full := q
	full.Trace = "one_more"
	const byAgent = "250 approvals of this agent are open: decide or cancel some of them"
	wantTooMany(t, "one more of an agent", w, red, full, byAgent)
	full.IngestKeyID = "ik_only_other"
	wantTooMany(t, "by another key", w, red, full, byAgent)
	if again, made, err := w.approvals.Ask(t.Context(), red, q); err != nil || made || again.Trace != q.Trace {
		t.Errorf("what is open already: made %v, %v", made, err)
	}
	fill(agents[1], "ik_only_operator") // has capacity left
	full.Agent, full.IngestKeyID = agents[2], "ik_only_operator"
	wantTooMany(t, "one more of a key", w, red, full, "500 approvals of this ingest key are open: decide or cancel some of them")
	fill(agents[2], "ik_only_other") // has capacity left
	fill(agents[3], "ik_only_other")
	q.Agent, q.IngestKeyID, q.Trace = agents[4], "ik_only_third", "one_more"
	wantTooMany(t, "one more", w, red, q, "1000 approvals are open: decide or cancel some of them")
	w.ask(blue, w.question(blue))
	page, err := w.approvals.List(t.Context(), red, approval.Filter{Status: approval.Pending}, "", 1)
	first := page.Approvals
	if err != nil || len(first) != 1 || page.Count != 1000 {
		t.Fatalf("got %v, %v", page, err)
	}
	if err := w.approvals.Cancel(t.Context(), red, first[0].IngestKeyID, first[0].ID); err != nil {
		t.Fatal(err)
	}
	w.ask(red, q)
}

// If only the ingest key says which agent asks, the agent has a share with this key alone: no key can fill another's.
func TestShareOfUnprovedAgent(t *testing.T) {
	w := newWorld(t)
	q := w.question(red)
	var first approval.Approval
	for i := range approval.MaxOpenByAgent {
		q.Trace = id.Trace(fmt.Sprint("trc_", i))
		first = w.ask(red, q)
	}
	q.Trace = "one_more"
	wantTooMany(t, "by the same key", w, red, q, "250 approvals of this agent are open: decide or cancel some of them")
	for _, key := range []string{"ik_other", "ik_only_this"} {
		other := q
		other.IngestKeyID = key
		w.ask(red, other)
	}
	if err := w.approvals.Cancel(t.Context(), red, q.IngestKeyID, first.ID); err != nil {
		t.Fatal(err)
	}
	w.ask(red, q)
	q.Trace = "and_more"
	wantTooMany(t, "full again", w, red, q, "250 approvals of this agent are open: decide or cancel some of them")
}

// anotherAgent creates an agent of an organization.
func (w *world) anotherAgent(tenant id.Tenant) id.Agent {
	w.t.Helper()
	made, _, err := w.agents.CreateAgent(w.t.Context(), tenant, sysevent.Operator, agent.Wanted{})
	if err != nil {
		w.t.Fatal(err)
	}
	return made.ID
}

// An agent that keeps asking and cancelling creates a bounded number of events, which do not count toward a plan: a
// burst, then a number per hour.
func TestAskingIsBounded(t *testing.T) {
	w := newWorld(t)
	q := w.question(red)
	open := w.ask(red, q)
	paid := w.Clock().Add(time.Hour - 2*time.Hour/approval.MaxAsked).UTC().Format("2006-01-02T15:04:05.000Z")
	change := storage.Change{Kind: "approval_tally", Value: []byte(`{"open":1,"asked":{"paid":"` + paid + `"}}`), If: storage.AnyVersion}
	if err := w.Engine.Write(t.Context(), red, []storage.Change{change}); err != nil {
		t.Fatal(err)
	}
	askAndCancel := func(asked *approval.Approval) error {
		if err := w.approvals.Cancel(t.Context(), red, "ik_operator", asked.ID); err != nil {
			t.Fatal(err)
		}
		again, _, err := w.approvals.Ask(t.Context(), red, q)
		*asked = again
		return err
	}
	for range 2 {
		if err := askAndCancel(&open); err != nil {
			t.Fatal(err)
		}
	}
	err := askAndCancel(&open)
	if f := fault.Of(err); f.Kind != fault.RateLimited || f.Message != "Too many approvals were asked for: at most 10000 in an hour" || f.RetryAfter != 360*time.Millisecond {
		t.Errorf("one more: got %v, Retry-After %v", err, f.RetryAfter)
	}
	size := w.State(t, red).Size()
	for range 5 {
		if _, _, err := w.approvals.Ask(t.Context(), red, q); !fault.Is(err, fault.RateLimited) {
			t.Errorf("and more: got %v", err)
		}
	}
	if got := w.State(t, red).Size(); got != size {
		t.Errorf("what was refused wrote %d events", got-size)
	}
	w.ask(blue, w.question(blue))
	w.Pass(360 * time.Millisecond)
	open = w.ask(red, q)
	if _, made, err := w.approvals.Ask(t.Context(), red, q); err != nil || made {
		t.Errorf("the open one: made %v, %v", made, err)
	}
	if err := askAndCancel(&open); !fault.Is(err, fault.RateLimited) {
		t.Errorf("another one at that moment: got %v", err)
	}
}

func wantTooMany(t *testing.T, name string, w *world, tenant id.Tenant, q approval.Question, message string) {
	t.Helper()
	_, _, err := w.approvals.Ask(t.Context(), tenant, q)
	if f := fault.Of(err); f.Kind != fault.RateLimited || f.Code != "rate_limited" || f.Message != message || f.RetryAfter != time.Minute {
		t.Errorf("%s: got %v, Retry-After %v", name, err, f.RetryAfter)
	}
}

// Approvals from before shares were counted do not count toward the share, and do not lower it when they end.
func TestShareOfOlderApprovals(t *testing.T) {
	w := newWorld(t)
	q := w.question(red)
	old := w.ask(red, q)
	record, err := w.Engine.Get(t.Context(), red, "approval", string(old.ID))
	if err != nil {
		t.Fatal(err)
	}
	changes := []storage.Change{
		{Kind: "approval", Key: string(old.ID), Value: []byte(strings.Replace(string(record.Value), `,"shared":true,"shared_by_agent":true,"unproved_agent":true`, "", 1)), If: storage.AnyVersion},
		{Kind: "approval_tally", Key: q.IngestKeyID, If: storage.AnyVersion},
		{Kind: "approval_tally", Key: "agent/" + string(q.Agent) + "/" + q.IngestKeyID, If: storage.AnyVersion},
	}
	if err := w.Engine.Write(t.Context(), red, changes); err != nil {
		t.Fatal(err)
	}
	q.Trace = "newer"
	newer := w.ask(red, q)
	for _, a := range []approval.Approval{old, newer} {
		if err := w.approvals.Cancel(t.Context(), red, q.IngestKeyID, a.ID); err != nil {
			t.Fatal(err)
		}
	}
	for _, holder := range []string{q.IngestKeyID, "agent/" + string(q.Agent) + "/" + q.IngestKeyID} {
		share, err := w.Engine.Get(t.Context(), red, "approval_tally", holder)
		if err != nil || string(share.Value) != `{"open":0}` {
			t.Errorf("%s: got %s, %v", holder, share.Value, err)
		}
	}
}
