package approval_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/schedule"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

func TestAskVoteConsume(t *testing.T) {
	w := newWorld(t)
	q := w.question(red)
	a := w.ask(red, q)
	if a.Status != approval.Pending || a.Quorum != 1 || a.ExpiresAt-a.CreatedAt != 600_000 || a.PolicyID != "refunds" || a.RuleID != "refund" {
		t.Errorf("asked: got %+v", a)
	}
	want := grant.Action{Organization: w.State(t, red).Identity().Organization, Agent: q.Agent, Tool: q.Tool, Payload: q.Payload}.Digest()
	if a.ActionDigest != want {
		t.Errorf("action digest: got %s, want %s", a.ActionDigest, want)
	}
	wantKind(t, "consumed before anybody agreed", consumeErr(w, red, a), fault.Conflict)
	w.approve(red, a, bob)
	note, err := w.approvals.Consume(t.Context(), red, a.ID, w.claim(red, a))
	if err != nil {
		t.Fatal(err)
	}
	key, _, ok, err := w.approvals.GrantKey(t.Context(), red)
	if err != nil || !ok {
		t.Fatalf("grant key: %v, %v", ok, err)
	}
	g, err := grant.Open([]byte(note), key)
	if err != nil {
		t.Fatal(err)
	}
	if g.Approval != string(a.ID) || g.PolicyDigest != a.PolicyDigest || g.Agent != a.Agent || g.Check(a.ActionDigest, id.InstantOf(w.Clock())) != nil {
		t.Errorf("grant: got %+v", g)
	}
	got := w.transitions(red, a)
	if want := []string{"requested by ik_operator", "approved by acc_bob", "consumed by ik_operator"}; !slices.Equal(got, want) {
		t.Errorf("ledger: got %q, want %q", got, want)
	}
	if _, err := w.approvals.Find(t.Context(), blue, a.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the other organization: got %v", err)
	}
	if said := w.Audit(t, blue); len(said) != 1 {
		t.Errorf("the other organization's ledger: got %v", said)
	}
}

// An approval that was given for one subject is for nobody else, and for no act without a subject.
func TestApprovalIsForItsSubject(t *testing.T) {
	w := newWorld(t)
	of := func(subject string) *event.OnBehalfOf {
		return &event.OnBehalfOf{Issuer: "https://login.example", Subject: subject}
	}
	for _, tenant := range []id.Tenant{red, blue} {
		q := w.question(tenant)
		plain := w.ask(tenant, q)
		q.OnBehalfOf = of("alice")
		alice := w.ask(tenant, q)
		q.Standing = event.Verified // the action is the same, and so is the question
		if again, made, err := w.approvals.Ask(t.Context(), tenant, q); err != nil || made || again.ID != alice.ID || again.Standing != "" {
			t.Errorf("the same question, verified: got %+v, made %v, %v", again, made, err)
		}
		q.OnBehalfOf = of("bob")
		bobs := w.ask(tenant, q)
		if bobs.Standing != event.Verified || bobs.OnBehalfOf.Subject != "bob" {
			t.Errorf("got %+v, %s", bobs.OnBehalfOf, bobs.Standing)
		}
		if _, err := w.vote(tenant, approval.Approval{ID: plain.ID, ActionDigest: alice.ActionDigest}, eve, approval.Approve); fault.Of(err).Message != "action_digest does not match the approval" {
			t.Errorf("a vote on another subject's action: got %v", err)
		}
		for _, a := range []approval.Approval{plain, alice, bobs} {
			w.approve(tenant, a, bob)
		}
		for _, by := range []approval.Approval{plain, alice, bobs} {
			for _, of := range []approval.Approval{plain, alice, bobs} {
				if by.ID == of.ID {
					continue
				}
				used := by
				used.ActionDigest = of.ActionDigest
				err := consumeErr(w, tenant, used)
				if f := fault.Of(err); f.Kind != fault.Conflict || f.Message != "The approval is for another agent, tool, payload or subject" {
					t.Errorf("%v for %v: got %v", by.OnBehalfOf, of.OnBehalfOf, err)
				}
			}
		}
		if err := consumeErr(w, tenant, alice); err != nil {
			t.Error(err)
		}
		// An erasure removes the subject, and the action stays.
		changes, err := w.approvals.Erase(t.Context(), tenant, bobs.ID, id.InstantOf(w.Clock()))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Engine.Write(t.Context(), tenant, changes); err != nil {
			t.Fatal(err)
		}
		found, err := w.approvals.Find(t.Context(), tenant, bobs.ID)
		if err != nil || found.OnBehalfOf != nil || found.Standing != "" || found.ActionDigest != bobs.ActionDigest {
			t.Errorf("erased: got %+v, %v", found, err)
		}
	}
}

func consumeErr(w *world, tenant id.Tenant, a approval.Approval) error {
	w.t.Helper()
	_, err := w.approvals.Consume(w.t.Context(), tenant, a.ID, w.claim(tenant, a))
	return err
}

// The config version does not change, so events judged in the meantime are not judged again.
func TestApprovalsReconfigureNothing(t *testing.T) {
	w := newWorld(t)
	before := w.State(t, red).ConfigVersion()
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	if err := consumeErr(w, red, a); err != nil {
		t.Fatal(err)
	}
	if after := w.State(t, red).ConfigVersion(); after != before {
		t.Errorf("config version: got %d, want %d", after, before)
	}
}

func TestAskAgain(t *testing.T) {
	w := newWorld(t)
	q := w.question(red)
	a := w.ask(red, q)
	again, made, err := w.approvals.Ask(t.Context(), red, q)
	if err != nil || made || again.ID != a.ID {
		t.Errorf("asked again: got %s, made %v, %v", again.ID, made, err)
	}
	for name, other := range map[string]func(*approval.Question){
		"subject": func(q *approval.Question) {
			q.OnBehalfOf = &event.OnBehalfOf{Issuer: "https://a.example", Subject: "alice"}
		},
		"payload": func(q *approval.Question) { q.Payload = []byte(`{"amount":8}`) },
		"trace":   func(q *approval.Question) { q.Trace = "trc_2" },
		"key":     func(q *approval.Question) { q.IngestKeyID = "ik_ann" },
	} {
		different := q
		other(&different)
		if b := w.ask(red, different); b.ID == a.ID {
			t.Errorf("another %s: the same approval", name)
		}
	}
	w.approve(red, a, bob)
	if again, made, err = w.approvals.Ask(t.Context(), red, q); err != nil || made || again.Status != approval.Approved {
		t.Errorf("asked again when approved: got %+v, made %v, %v", again, made, err)
	}
	if err := consumeErr(w, red, a); err != nil {
		t.Fatal(err)
	}
	if b := w.ask(red, q); b.ID == a.ID {
		t.Error("a consumed approval was found open")
	}
}

func TestAskRefuses(t *testing.T) {
	w := newWorld(t)
	for name, q := range map[string]approval.Question{
		"denied":  {Agent: w.keys[red].Agent, Tool: "acme.drop", IngestKeyID: "ik_operator"},
		"allowed": {Agent: w.keys[red].Agent, Tool: "acme.read", IngestKeyID: "ik_operator"},
		"unknown": {Agent: "agt_nobody", Tool: "acme.refund", IngestKeyID: "ik_operator"},
		"blue's":  {Agent: w.keys[blue].Agent, Tool: "acme.refund", IngestKeyID: "ik_operator"},
	} {
		_, _, err := w.approvals.Ask(t.Context(), red, q)
		wantKind(t, name, err, fault.Invalid)
	}
	if got := w.State(t, red).Size(); got != 1 {
		t.Errorf("size: got %d, want 1", got)
	}
}

func TestQuorum(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "two", 2)
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	if got := w.status(red, a); got != approval.Pending {
		t.Errorf("after one of two: got %s", got)
	}
	_, err := w.vote(red, a, bob, approval.Approve)
	wantKind(t, "the same voter twice", err, fault.Conflict)
	_, err = w.vote(red, a, bob, approval.Deny)
	wantKind(t, "the same voter the other way", err, fault.Conflict)
	w.approve(red, a, eve)
	if got := w.status(red, a); got != approval.Approved {
		t.Errorf("after two of two: got %s", got)
	}
	_, err = w.vote(red, a, ann, approval.Deny)
	wantKind(t, "a vote on what is approved", err, fault.Conflict)
}

func TestRoleLostBetweenVoteAndQuorum(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "two", 2)
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	w.people.set(bob, account.Member)
	w.approve(red, a, eve)
	if got := w.status(red, a); got != approval.Pending {
		t.Errorf("got %s, want pending: one of two may not vote any more", got)
	}
	w.approve(red, a, ann)
	if got := w.status(red, a); got != approval.Approved {
		t.Errorf("got %s, want approved", got)
	}
}

func TestOneDenialIsFinal(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "two", 2)
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	if _, err := w.vote(red, a, eve, approval.Deny); err != nil {
		t.Fatal(err)
	}
	_, err := w.vote(red, a, ann, approval.Approve)
	wantKind(t, "a vote on what is denied", err, fault.Conflict)
	wantKind(t, "consumed", consumeErr(w, red, a), fault.Conflict)
	want := []string{"requested by ik_operator", "voted by acc_bob", "denied by acc_eve"}
	if got := w.transitions(red, a); !slices.Equal(got, want) {
		t.Errorf("ledger: got %q, want %q", got, want)
	}
}

func TestVoteRefuses(t *testing.T) {
	w := newWorld(t)
	q := w.question(red)
	a := w.ask(red, q)
	q.IngestKeyID = "ik_ann"
	byAnnsKey := w.ask(red, q)
	q.IngestKeyID, q.Principal = "ik_operator", "ACC_BOB@example.com"
	q.Trace = "trc_9"
	forBob := w.ask(red, q)
	q.Principal, q.Trace = string(bob), "trc_10"
	forBobsAccount := w.ask(red, q)
	for name, tt := range map[string]struct {
		a    approval.Approval
		who  account.ID
		vote string
		want fault.Kind
	}{
		"a member's":               {a, "acc_member", approval.Approve, fault.Forbidden},
		"a stranger's":             {a, "acc_nobody", approval.Approve, fault.Forbidden},
		"who made the ingest key":  {byAnnsKey, ann, approval.Approve, fault.Forbidden},
		"for whom the agent acts":  {forBob, bob, approval.Approve, fault.Forbidden},
		"the same by account":      {forBobsAccount, bob, approval.Approve, fault.Forbidden},
		"neither approve nor deny": {a, bob, "maybe", fault.Invalid},
		"no such approval":         {approval.Approval{ID: "apr_none"}, bob, approval.Approve, fault.NotFound},
	} {
		_, err := w.vote(red, tt.a, tt.who, tt.vote)
		wantKind(t, name, err, tt.want)
	}
	_, err := w.vote(blue, a, bob, approval.Approve)
	wantKind(t, "in the other organization", err, fault.NotFound)
	changed := a
	changed.ActionDigest[0] ^= 1
	_, err = w.vote(red, changed, bob, approval.Approve)
	wantKind(t, "on another action", err, fault.Conflict)
	if got := w.status(red, a); got != approval.Pending {
		t.Errorf("got %s, want pending", got)
	}
	w.people.allow(true)
	w.approve(red, byAnnsKey, ann)
}

// An approval requested while a clock was ahead expires as soon as the clock is right, not only after its lifetime
// counted from that future time.
func TestAskedAhead(t *testing.T) {
	w := newWorld(t)
	const ahead = 400 * 24 * time.Hour
	right := w.ask(red, w.question(red))
	w.Pass(5 * time.Second)
	w.ask(blue, w.question(blue))
	w.Pass(ahead)
	q := w.question(red)
	q.Trace = "trc_ahead"
	late := w.ask(red, q)
	w.Pass(-ahead)
	if got := w.status(red, late); got != approval.Expired {
		t.Errorf("asked ahead: got %s", got)
	}
	if got := w.status(red, right); got != approval.Pending {
		t.Errorf("asked before: got %s", got)
	}
}

func TestExpiry(t *testing.T) {
	w := newWorld(t)
	pending, q := w.ask(red, w.question(red)), w.question(red)
	q.Trace = "trc_2"
	approved := w.ask(red, q)
	w.approve(red, approved, bob)
	w.Pass(600*time.Second - time.Millisecond)
	if got := w.status(red, pending); got != approval.Pending {
		t.Errorf("a moment before: got %s", got)
	}
	w.Pass(time.Millisecond)
	for _, a := range []approval.Approval{pending, approved} {
		if got := w.status(red, a); got != approval.Expired {
			t.Errorf("before it is stated: got %s", got)
		}
	}
	wantKind(t, "consumed", consumeErr(w, red, approved), fault.Gone)
	_, err := w.vote(red, pending, bob, approval.Approve)
	wantKind(t, "voted", err, fault.Conflict)
	w.Pass(time.Second)
	for range 2 { // the second sweep records nothing
		if err := w.approvals.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []approval.Approval{pending, approved} {
		all := w.transitions(red, a)
		expired := slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, "expired") })
		if len(expired) != 1 {
			t.Errorf("ledger: got %q, want one expired", all)
		}
	}
	if b := w.ask(red, w.question(red)); b.ID == pending.ID {
		t.Error("an expired approval was found open")
	}
}

// No caller reads the approval: the sweep finds it by its due time, even after a restart.
func TestSweepFindsWhatIsDue(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	b := w.ask(blue, w.question(blue))
	w.open()
	w.Pass(601 * time.Second)
	if err := w.approvals.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for tenant, a := range map[id.Tenant]approval.Approval{red: a, blue: b} {
		if got := w.transitions(tenant, a); len(got) != 2 || got[1] != "expired by operator" {
			t.Errorf("ledger of %d: got %q", tenant, got)
		}
	}
	left, err := w.Store.Scan(t.Context(), id.Service, "approval_due", "", "", 10)
	if err != nil || len(left) != 0 {
		t.Errorf("due: got %v, %v; want none", left, err)
	}
}

func TestAnotherPolicyInvalidates(t *testing.T) {
	w := newWorld(t)
	a, other := w.ask(red, w.question(red)), w.ask(blue, w.question(blue))
	w.approve(red, a, bob)
	w.activate(red, "newer", 2)
	if got := w.status(red, a); got != approval.Invalidated {
		t.Errorf("at once: got %s", got)
	}
	if got := w.status(blue, other); got != approval.Pending {
		t.Errorf("the other organization: got %s", got)
	}
	wantKind(t, "consumed", consumeErr(w, red, a), fault.Conflict)
	w.approvals.PolicyChanged(red)
	if err := w.approvals.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"requested by ik_operator", "approved by acc_bob", "invalidated by operator"}
	if got := w.transitions(red, a); !slices.Equal(got, want) {
		t.Errorf("ledger: got %q, want %q", got, want)
	}
}

func TestSweepStatesInvalidation(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	w.activate(red, "newer", 2)
	w.approvals.PolicyChanged(red)
	if err := w.approvals.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.transitions(red, a); len(got) != 2 || got[1] != "invalidated by operator" {
		t.Errorf("ledger: got %q", got)
	}
}

func TestCancelAndRevoke(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	wantKind(t, "another key's", w.approvals.Cancel(t.Context(), red, "ik_ann", a.ID), fault.NotFound)
	for range 2 { // repeating it has no effect
		if err := w.approvals.Cancel(t.Context(), red, a.IngestKeyID, a.ID); err != nil {
			t.Fatal(err)
		}
	}
	wantKind(t, "revoked when cancelled", w.approvals.Revoke(t.Context(), red, "acc_bob", a.ID, approval.Remark{}), fault.Conflict)
	b := w.ask(red, w.question(red))
	w.approve(red, b, bob)
	if err := w.approvals.Revoke(t.Context(), red, "acc_eve", b.ID, approval.Remark{Comment: "second thoughts"}); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "consumed when revoked", consumeErr(w, red, b), fault.Conflict)
	c := w.ask(red, w.question(red))
	w.approve(red, c, bob)
	if err := consumeErr(w, red, c); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "revoked when consumed", w.approvals.Revoke(t.Context(), red, "acc_eve", c.ID, approval.Remark{}), fault.Conflict)
	for name, tt := range map[string]struct {
		a    approval.Approval
		want []string
	}{
		"cancelled": {a, []string{"requested by ik_operator", "cancelled by ik_operator"}},
		"revoked":   {b, []string{"requested by ik_operator", "approved by acc_bob", "revoked by acc_eve"}},
	} {
		if got := w.transitions(red, tt.a); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

func TestList(t *testing.T) {
	w := newWorld(t)
	var asked []approval.ID
	for i := range 5 {
		q := w.question(red)
		q.Trace = id.Trace("trc_" + string(rune('a'+i)))
		asked = append(asked, w.ask(red, q).ID)
		w.Pass(time.Millisecond) // IDs increase with the clock
	}
	if err := w.approvals.Cancel(t.Context(), red, "ik_operator", asked[1]); err != nil {
		t.Fatal(err)
	}
	names := func(status approval.Status, limit int) (all []approval.ID) {
		for after := approval.ID(""); ; {
			page, err := w.approvals.List(t.Context(), red, approval.Filter{Status: status}, after, limit)
			if err != nil || len(page.Approvals) > limit {
				t.Fatalf("got %d, %v", len(page.Approvals), err)
			}
			for _, a := range page.Approvals {
				all = append(all, a.ID)
			}
			if page.Next == "" {
				slices.Reverse(all) // the list starts with the latest
				return all
			}
			after = page.Next
		}
	}
	for _, limit := range []int{1, 2, 100} {
		if got := names("", limit); !slices.Equal(got, asked) {
			t.Errorf("all by %d: got %v, want %v", limit, got, asked)
		}
		if got, want := names(approval.Pending, limit), []approval.ID{asked[0], asked[2], asked[3], asked[4]}; !slices.Equal(got, want) {
			t.Errorf("pending by %d: got %v, want %v", limit, got, want)
		}
		if got, want := names(approval.Cancelled, limit), asked[1:2]; !slices.Equal(got, want) {
			t.Errorf("cancelled by %d: got %v, want %v", limit, got, want)
		}
	}
	if other, err := w.approvals.List(t.Context(), blue, approval.Filter{}, "", 10); err != nil || len(other.Approvals) != 0 || other.Count != 0 || !other.Complete {
		t.Errorf("the other organization: got %v, %v", other, err)
	}
}

// Pages are also bounded in bytes, and together they contain all approvals.
func TestListOfLargePayloads(t *testing.T) {
	w := newWorld(t)
	const many, size = 12, 200 << 10
	for i := range many {
		q := w.question(red)
		q.Trace, q.Payload = id.Trace(fmt.Sprint("trc_", i)), []byte(`{"text":"`+strings.Repeat("x", size)+`"}`)
		w.ask(red, q)
		w.Pass(time.Millisecond)
	}
	for _, status := range []approval.Status{"", approval.Pending} {
		seen, pages := map[approval.ID]bool{}, 0
		for after := approval.ID(""); ; {
			page, err := w.approvals.List(t.Context(), red, approval.Filter{Status: status}, after, 1000)
			if err != nil || len(page.Approvals) > 6 {
				t.Fatalf("got a page of %d, %v", len(page.Approvals), err)
			}
			for _, a := range page.Approvals {
				seen[a.ID] = true
			}
			if pages++; page.Next == "" {
				break
			}
			after = page.Next
		}
		if len(seen) != many || pages < 2 {
			t.Errorf("%q: got %d approvals on %d pages", status, len(seen), pages)
		}
	}
}

// The callback receives each change of state, from the delivery written in the same append.
func TestCallback(t *testing.T) {
	w := newWorld(t)
	q := w.question(red)
	q.CallbackURL = "http://agent.example/"
	_, _, err := w.approvals.Ask(t.Context(), red, q)
	wantKind(t, "an address that is not called", err, fault.Invalid)
	q.CallbackURL = "https://agent.example/hook"
	a := w.ask(red, q)
	w.approve(red, a, bob)
	if err := consumeErr(w, red, a); err != nil {
		t.Fatal(err)
	}
	w.ask(blue, w.question(blue)) // without a callback
	w.deliver()
	slices.Sort(w.calls.bodies)
	now := id.InstantOf(w.Clock()).String()
	for i, status := range []string{"approved", "consumed"} {
		want := `{"type":"approval.` + status + `","timestamp":"` + now + `","data":{"approval_id":"` + string(a.ID) + `","status":"` + status +
			`","action_digest":"` + a.ActionDigest.String() + `","agent_id":"` + string(a.Agent) + `","trace_id":"trc_1","comment":"so be it","reason_code":null}}`
		if len(w.calls.bodies) != 2 || w.calls.bodies[i] != want {
			t.Errorf("calls: got %q, want %q", w.calls.bodies, want)
		}
	}
}

// If a ledger accepts no events, the end of an approval cannot be recorded. The approval has ended anyway, and the
// sweep retries later, not every second. The other organization's end is recorded.
func TestSweepOfAFrozenLedger(t *testing.T) {
	w := newWorld(t)
	a, other := w.ask(red, w.question(red)), w.ask(blue, w.question(blue))
	if err := w.Ledgers.Freeze(t.Context(), red, "a test"); err != nil {
		t.Fatal(err)
	}
	w.Pass(601 * time.Second)
	for range 2 {
		if err := w.approvals.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.status(red, a); got != approval.Expired {
		t.Errorf("got %s, want expired", got)
	}
	if got := w.transitions(blue, other); len(got) != 2 {
		t.Errorf("the other organization: got %q", got)
	}
	left, err := w.Engine.Scan(t.Context(), id.Service, "approval_due", "", "", 10)
	if err != nil || len(left) != 1 {
		t.Fatalf("due: got %v, %v; want one", left, err)
	}
	e, err := schedule.ParseEntry(left[0].Key)
	if want := id.InstantOf(w.Clock()) + 3_600_000; err != nil || e.At != want || e.Name != string(a.ID) {
		t.Errorf("due: got %+v, %v; want %d", e, err, want)
	}
}
