package approval_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/storage"
)

// listed requests approvals for three tools and two agents, and ends them in several ways.
func (w *world) listed() (all []approval.Approval) {
	w.t.Helper()
	w.install(red, "all", `{"rule_id":"any","tool":"acme.**","decision":"allow_with_obligation","obligations":[{"type":"human_approval","ttl_seconds":600}]}`)
	records, other, err := w.agents.NewAgent(w.t.Context(), red, "acc_rules", agent.Wanted{})
	if err == nil {
		err = w.Engine.Write(w.t.Context(), red, records)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range 12 {
		q := w.question(red)
		q.Trace, q.Tool = id.Trace(fmt.Sprint("trc_", i)), []id.Tool{"acme.refund", "acme.pay.card", "acme.pay.bank"}[i%3]
		if i%2 == 1 {
			q.Agent = other.Agent
		}
		all = append(all, w.ask(red, q))
		w.Pass(time.Second)
	}
	w.approve(red, all[0], bob)
	if _, err := w.vote(red, all[1], bob, approval.Deny); err != nil {
		w.t.Fatal(err)
	}
	if err := w.approvals.Cancel(w.t.Context(), red, all[2].IngestKeyID, all[2].ID); err != nil {
		w.t.Fatal(err)
	}
	return all
}

func TestListFilters(t *testing.T) { onEngines(t, listFilters) }

func listFilters(t *testing.T, w *world) {
	all := w.listed()
	w.ask(blue, w.question(blue))
	status := map[approval.ID]approval.Status{all[0].ID: approval.Approved, all[1].ID: approval.Denied, all[2].ID: approval.Cancelled}
	tools := map[string]func(id.Tool) bool{
		"": func(id.Tool) bool { return true }, "**": func(id.Tool) bool { return true }, "acme.*": func(tool id.Tool) bool { return tool == "acme.refund" },
		"acme.pay.*": func(tool id.Tool) bool { return tool != "acme.refund" }, "acme.pay.bank": func(tool id.Tool) bool { return tool == "acme.pay.bank" },
		"other.**": func(id.Tool) bool { return false },
	}
	for glob, matches := range tools {
		for _, who := range []id.Agent{"", all[0].Agent, all[1].Agent, "agt_nobody"} {
			for _, stands := range []approval.Status{"", approval.Pending, approval.Approved, approval.Denied, approval.Cancelled, approval.Expired} {
				var want []approval.ID
				for _, a := range slices.Backward(all) {
					now := approval.Pending
					if s, ended := status[a.ID]; ended {
						now = s
					}
					if matches(a.Tool) && (who == "" || who == a.Agent) && (stands == "" || stands == now) {
						want = append(want, a.ID)
					}
				}
				f := approval.Filter{Status: stands, Agent: who, Tool: glob}
				for _, limit := range []int{1, 5, 100} {
					w.wantList(red, f, limit, want)
				}
				if stands == approval.Pending {
					f.Oldest = true
					slices.Reverse(want)
					w.wantList(red, f, 2, want)
				}
			}
		}
	}
	w.Pass(600 * time.Second) // by now all remaining ones have expired, and no event records it yet
	var over []approval.ID
	for _, a := range slices.Backward(all) {
		if s := status[a.ID]; s == "" || s == approval.Approved {
			over = append(over, a.ID)
		}
	}
	w.wantList(red, approval.Filter{Status: approval.Expired}, 4, over)
	w.wantList(red, approval.Filter{Status: approval.Pending}, 4, nil)
}

// wantList reads a list page by page.
func (w *world) wantList(tenant id.Tenant, f approval.Filter, limit int, want []approval.ID) {
	w.t.Helper()
	var got []approval.ID
	for before := approval.ID(""); ; {
		page, err := w.approvals.List(w.t.Context(), tenant, f, before, limit)
		if err != nil || len(page.Approvals) > limit {
			w.t.Fatalf("%+v: got %d, %v", f, len(page.Approvals), err)
		}
		if f.Oldest {
			if page.Count != -1 {
				w.t.Errorf("%+v: got count %d", f, page.Count)
			}
		} else if before == "" && (page.Count != len(want) || !page.Complete) || before != "" && page.Count != -1 {
			w.t.Errorf("%+v after %q: got count %d, complete %v, want %d", f, before, page.Count, page.Complete, len(want))
		}
		for _, a := range page.Approvals {
			got = append(got, a.ID)
		}
		if before = page.Next; before == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%+v by %d: got %v, want %v", f, limit, got, want)
	}
}

// A voter's list contains the approvals without an obstacle for that user, with any page size.
func TestListOfAVoter(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "two", 2)
	var all []approval.Approval
	for i := range 9 {
		q := w.question(red)
		q.Trace = id.Trace(fmt.Sprint("trc_", i))
		if i%3 == 1 {
			q.Principal = string(eve)
		}
		all = append(all, w.ask(red, q))
		w.Pass(time.Second)
	}
	w.approve(red, all[0], eve)
	w.approve(red, all[2], bob)
	w.approve(red, all[2], eve)
	w.ask(blue, w.question(blue))
	for _, who := range []account.ID{ann, bob, eve, "acc_member", "acc_stranger"} {
		var want []approval.ID
		for _, a := range slices.Backward(all) {
			now, err := w.approvals.Find(t.Context(), red, a.ID)
			if err != nil {
				t.Fatal(err)
			}
			obstacles, err := w.approvals.Obstacles(t.Context(), red, who, []approval.Approval{now})
			if err != nil {
				t.Fatal(err)
			}
			if obstacles[0] == "" {
				want = append(want, a.ID)
			}
		}
		if voters := map[account.ID]int{bob: 8, eve: 4}; len(want) != voters[who] && voters[who] > 0 {
			t.Fatalf("%s may vote on %d: mend this test", who, len(want))
		}
		for _, limit := range []int{1, 2, 100} {
			got := w.listOfVoter(who, limit)
			if !slices.Equal(got, want) {
				t.Errorf("%s by %d: got %v, want %v", who, limit, got, want)
			}
		}
	}
}

// listOfVoter reads a voter's list page by page.
func (w *world) listOfVoter(who account.ID, limit int) (got []approval.ID) {
	w.t.Helper()
	f := approval.Filter{Status: approval.Pending, Voter: who}
	for before := approval.ID(""); ; {
		page, err := w.approvals.List(w.t.Context(), red, f, before, limit)
		if err != nil || page.Count != -1 || len(page.Approvals) > limit {
			w.t.Fatalf("got %+v, %v", page, err)
		}
		for _, a := range page.Approvals {
			got = append(got, a.ID)
		}
		if before = page.Next; before == "" {
			return got
		}
	}
}

// New approvals appear on the first page and do not shift later pages.
func TestListWhileOthersAsk(t *testing.T) {
	w := newWorld(t)
	all := w.listed()
	var got []approval.ID
	for before, n := approval.ID(""), 0; ; n++ {
		page, err := w.approvals.List(t.Context(), red, approval.Filter{}, before, 5)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Approvals {
			got = append(got, a.ID)
		}
		q := w.question(red)
		q.Trace = id.Trace(fmt.Sprint("new_", n))
		w.ask(red, q)
		w.Pass(time.Second)
		if before = page.Next; before == "" {
			break
		}
	}
	slices.Reverse(got)
	if want := idsOf(all); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func idsOf(all []approval.Approval) (ids []approval.ID) {
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	return ids
}

// A store of an older program has no list. The first read builds it, even if an earlier build was interrupted.
func TestListOfAnOlderStore(t *testing.T) { onEngines(t, listOfAnOlderStore) }

func listOfAnOlderStore(t *testing.T, w *world) {
	all := w.listed()
	want := idsOf(all)
	slices.Reverse(want)
	for _, left := range []int{0, 3} {
		entries, err := w.Engine.Scan(t.Context(), red, "approval_newest", "", "", 100)
		if err != nil || len(entries) != len(all)+1 {
			t.Fatalf("got %d entries, %v", len(entries), err)
		}
		for _, e := range entries[left:] {
			if err := w.Engine.Write(t.Context(), red, []storage.Change{{Kind: e.Kind, Key: e.Key, If: storage.AnyVersion}}); err != nil {
				t.Fatal(err)
			}
		}
		w.wantList(red, approval.Filter{}, 5, want)
		w.wantList(red, approval.Filter{Status: approval.Denied}, 5, []approval.ID{all[1].ID})
	}
}

func TestListRefuses(t *testing.T) {
	w := newWorld(t)
	for _, glob := range []string{"a b", "acme.**.x", "acme.", "\x00", `"`} {
		_, err := w.approvals.List(t.Context(), red, approval.Filter{Tool: glob}, "", 5)
		if f := fault.Of(err); f.Kind != fault.Invalid || f.Message != "tool must be segments of [A-Za-z0-9_:/-]+ or * with dots between them, and may end in **" {
			t.Errorf("%q: got %v", glob, err)
		}
	}
	w.ask(red, w.question(red))
	for _, before := range []approval.ID{"zzz", "_", "apr_", "apr~"} { // never returned as cursors
		if _, err := w.approvals.List(t.Context(), red, approval.Filter{}, before, 5); err != nil {
			t.Errorf("after %q: %v", before, err)
		}
	}
}
