package erasure_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/operate/backup"
	"github.com/agentledger/agentledger/internal/operate/erasure"
	"github.com/agentledger/agentledger/internal/read/index"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// A list that was read before an erasure shows no principal after it.
func TestListsAfterErasure(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.send(red, some()...)
	w.send(blue, some()...)
	find := func(tenant id.Tenant) (names []id.Event) {
		page, err := w.index.List(t.Context(), tenant, index.Query{Filter: index.Filter{Principal: "joe"}, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			names = append(names, row.Event)
		}
		return names
	}
	wantText(t, "before", find(red), "[e2 e1]")
	wantText(t, "before, the other organization", find(blue), "[e2 e1]")
	w.begin(red, erasure.Wanted{Agent: "agt_a"})
	w.drain()
	wantText(t, "after", find(red), "[e2]")
	wantText(t, "after, the other organization", find(blue), "[e2 e1]")
}

// A change of the policy ends an approval whose question was erased, because it cannot be asked again. An approval with
// its payload continues.
func TestPolicyAfterErasure(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.furnish(red)
	all := some()
	kept, erased := w.ask(red, w.question(red, all[0])), w.ask(red, w.question(red, all[3]))
	w.begin(red, erasure.Wanted{Principal: all[3].principal, From: index.Bound{Given: true}, To: index.Bound{Given: true, Index: 1}})
	w.begin(red, erasure.Wanted{Trace: id.Trace(all[3].trace)})
	w.drain()
	w.activate(red, "another")
	for name, want := range map[approval.ID]approval.Status{kept.ID: approval.Pending, erased.ID: approval.Invalidated} {
		found, err := w.approvals.Find(t.Context(), red, name)
		if err != nil || found.Status != want || (found.ErasedAt != 0) != (name == erased.ID) {
			t.Errorf("got %s, erased at %v, %v, want %s", found.Status, found.ErasedAt, err, want)
		}
	}
}

// The due entries of a copied organization follow from its records. A completed erasure has none.
func TestServiceRecords(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.send(red, some()...)
	w.begin(red, erasure.Wanted{Agent: "agt_a"})
	w.retain(red, 9)
	entries := func() (all []string) {
		for _, kind := range []storage.Kind{"erasure", "erasure_tally", "retention"} {
			records, err := w.Engine.Scan(t.Context(), red, kind, "", "", 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				found, err := erasure.ServiceRecords(red, r)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range found {
					all = append(all, string(e.Kind)+" "+e.Key)
				}
			}
		}
		return all
	}
	due, err := w.Engine.Scan(t.Context(), id.Service, "erasure_due", "", "", 10)
	if err != nil || len(due) != 2 {
		t.Fatalf("due: got %v, %v", due, err)
	}
	wantText(t, "entries", entries(), []string{"erasure_due " + due[0].Key, "erasure_due " + due[1].Key})
	w.drain()
	wantText(t, "entries when it is done", len(entries()), 1)
	for _, kind := range []storage.Kind{"erasure", "retention"} {
		if _, err := erasure.ServiceRecords(red, storage.Record{Kind: kind, Value: []byte("{")}); err == nil {
			t.Errorf("%s: a damaged record has entries", kind)
		}
	}
}

// An older program stored the principal of an open approval. No answer shows it, its account may not vote, and it is
// removed when the approval ends.
func TestPrincipalOfOlderErasures(t *testing.T) {
	w := newWorld(t, ledgertest.New(t))
	w.furnish(red)
	question := w.question(red, some()[3])
	question.Principal = "mia@example.com"
	pending := w.ask(red, question)
	stored, err := w.Engine.Get(t.Context(), red, "approval", string(pending.ID))
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(stored.Value, &members); err != nil {
		t.Fatal(err)
	}
	delete(members, "payload")
	members["erased_at"] = pending.CreatedAt
	older, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	change := storage.Change{Kind: "approval", Key: string(pending.ID), Value: older, If: stored.Version}
	if err := w.Engine.Write(t.Context(), red, []storage.Change{change}); err != nil {
		t.Fatal(err)
	}
	found, err := w.approvals.Find(t.Context(), red, pending.ID)
	if err != nil || found.Principal != "" || found.ErasedAt == 0 {
		t.Errorf("got %+v, %v", found, err)
	}
	_, err = w.approvals.Vote(t.Context(), red, pending.ID, approval.Ballot{Account: "mia", Vote: approval.Approve, Action: pending.ActionDigest})
	refused(t, "a vote of the principal", err, fault.Forbidden, "")
	if _, err := w.approvals.Vote(t.Context(), red, pending.ID, approval.Ballot{Account: "acc_bob", Vote: approval.Deny, Action: pending.ActionDigest}); err != nil {
		t.Fatal(err)
	}
	wantText(t, "places of the principal", w.places(red, `"mia`), "[]")
}

// The files of an embedded store are also rewritten after an erasure that affects only an approval, and after the
// principal of an erasure is removed.
func TestErasuresOfRecordsAreCompacted(t *testing.T) {
	engine := enginetest.Pebble(t).(backup.CompactionStore)
	w := newWorld(t, ledgertest.On(t, engine.(storage.Engine)))
	w.furnish(red)
	question := w.question(red, some()[3])
	w.ask(red, question)
	at := w.State(t, red).Size() - 1
	compacted := func() uint64 {
		t.Helper()
		if err := engine.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		return engine.Erasures()
	}
	before := compacted()
	if _, err := w.erasures.AskForEvent(t.Context(), red, ann, fmt.Sprint(at), erasure.BySecret); err != nil {
		t.Fatal(err)
	}
	w.drain()
	if engine.Erasures() == before {
		t.Error("the store is not compacted after the erasure of an approval")
	}
	before = compacted()
	w.begin(red, erasure.Wanted{Principal: "nobody"})
	w.drain()
	if engine.Erasures() == before {
		t.Error("the store is not compacted after a principal is forgotten")
	}
}
