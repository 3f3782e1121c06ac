package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/grant"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/http/egress"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// asking is a policy that requires one approver for payments above 10, and none for drops.
const asking = `[
	{"rule_id":"drop","tool":"acme.drop","decision":"deny","reason":"never"},
	{"rule_id":"ask","tool":"acme.pay","when":"payload.amount > 10","decision":"allow_with_obligation","reason":"ask first",
	 "obligations":[{"type":"human_approval","approvals":1,"ttl_seconds":600}]}]`

// office adds approvals to a world.
type office struct {
	*world
	approvals *approval.Approvals
	left      map[account.ID]bool // members who may no longer vote
	behalf    *event.OnBehalfOf   // of questions
	run       workflow.Run
}

func newOffice(t testing.TB) *office {
	t.Helper()
	return newOfficeOn(t, ledgertest.New(t))
}

func newOfficeOn(t testing.TB, s *ledgertest.Service) *office {
	t.Helper()
	o := &office{world: newWorldOn(t, s), left: map[account.ID]bool{}}
	o.activate(red, "asking", asking)
	o.activate(blue, "asking", asking)
	o.staff()
	return o
}

// staff starts a new process on the stored state.
func (o *office) staff() {
	o.approvals = approval.New(approval.Options{
		Records: o.Engine, Events: o.SystemEvents, Ledgers: o.Ledgers, Policies: o.book, Agents: o.agents,
		Organizations: o, Members: o, Keyring: o.Keyring(), Clock: o.Clock,
		Webhooks: webhook.New(webhook.Options{Records: o.Engine, Keyring: o.Keyring(), Caller: nobody{}, Clock: o.Clock}),
	})
	o.workflows = o.desk()
}

// desk returns another process on the same store.
func (o *office) desk() *workflow.Workflows {
	return workflow.New(workflow.Options{
		Records: o.records, Events: o.SystemEvents, Ledgers: o.Ledgers, Policies: o.book, Agents: o.agents,
		Organizations: o.orgs, Approvals: o.approvals, Silence: time.Hour, MaxBytes: 4096, Clock: o.Clock,
	})
}

func (o *office) Membership(_ context.Context, t id.Tenant, who account.ID) (account.Membership, error) {
	if o.left[who] {
		return account.Membership{}, fault.New(fault.NotFound, "Not found")
	}
	return account.Membership{Account: who, Tenant: t, Role: account.Approver}, nil
}

func (o *office) ByID(_ context.Context, who account.ID) (account.Account, error) {
	return account.Account{ID: who, Email: string(who) + "@example.com"}, nil
}

func (o *office) Settings(ctx context.Context, s *log.State) (*org.Settings, error) {
	return o.orgs.Settings(ctx, s)
}

func (o *office) IngestKey(_ context.Context, _ id.Tenant, key string) (org.IngestKey, error) {
	return org.IngestKey{ID: key, CreatedBy: sysevent.Operator}, nil
}

// nobody has no callbacks.
type nobody struct{}

func (nobody) CheckURL(string) error { return egress.ErrRefused }

func (nobody) Post(context.Context, string, http.Header, []byte) (egress.Answer, error) {
	return egress.Answer{}, errors.New("nobody is called")
}

// ask requests approval of a payment by the run's agent.
func (o *office) ask(tenant id.Tenant, key string, amount int) approval.Approval {
	o.t.Helper()
	a, _, err := o.approvals.Ask(o.t.Context(), tenant, approval.Question{
		Agent: o.run.Agent, Tool: "acme.pay", Payload: pay("", amount).Payload, IngestKeyID: key, OnBehalfOf: o.behalf,
	})
	if err != nil {
		o.t.Fatal(err)
	}
	return a
}

func (o *office) vote(tenant id.Tenant, a approval.Approval, vote string) {
	o.t.Helper()
	_, err := o.approvals.Vote(o.t.Context(), tenant, a.ID, approval.Ballot{Account: "acc_bob", Vote: vote, Action: a.ActionDigest})
	if err != nil {
		o.t.Fatal(err)
	}
}

// agreed requests an approval and approves it.
func (o *office) agreed(tenant id.Tenant, amount int) approval.Approval {
	o.t.Helper()
	a := o.ask(tenant, "ik_1", amount)
	o.vote(tenant, a, approval.Approve)
	return a
}

func (o *office) status(tenant id.Tenant, a approval.Approval) approval.Status {
	o.t.Helper()
	found, err := o.approvals.Find(o.t.Context(), tenant, a.ID)
	if err != nil {
		o.t.Fatal(err)
	}
	return found.Status
}

// statements returns the ledger's statements about approvals.
func (o *office) statements(tenant id.Tenant) (all []string) {
	o.t.Helper()
	for _, s := range o.Audit(o.t, tenant) {
		if s.Kind == "ledger_approval" {
			all = append(all, between(s.Payload, `"transition":"`, `"`)+" by "+s.Principal)
		}
	}
	return all
}

// paying is a step that consumes an approval.
func paying(key string, amount int, a approval.Approval) workflow.Step {
	s := pay(key, amount)
	s.Status, s.Approval = "started", a.ID
	return s
}

// The step, the consumption and the grant are committed together, and a retry gets the same answer.
func TestStepConsumesApproval(t *testing.T) {
	o := newOffice(t)
	o.run = o.start(red, beginning("ext"))
	a := o.agreed(red, 70)
	before := o.State(t, red).Size()
	got := o.record(red, o.run.ID, step("first"), paying("pay", 70, a))[1]
	if got.Policy.Effective != id.AllowWithObligation || got.Consumed == nil || got.Consumed.Approval != a.ID {
		t.Fatalf("got %+v, %+v", got, got.Consumed)
	}
	key, _, _, err := o.approvals.GrantKey(t.Context(), red)
	if err != nil {
		t.Fatal(err)
	}
	g, err := grant.Open([]byte(got.Consumed.Grant), key)
	if err != nil || g.Approval != string(a.ID) || g.Agent != o.run.Agent || g.ActionDigest != a.ActionDigest || g.NotAfter-g.NotBefore != grant.Life {
		t.Errorf("grant: got %+v, %v", g, err)
	}
	if size := o.State(t, red).Size(); size != before+4 { // two steps, the grant key, the consumption
		t.Errorf("size: got %d, want %d", size, before+4)
	}
	all := o.ledger(red)
	last, paid := all[len(all)-1].envelope, all[len(all)-3].envelope
	if got := all[len(all)-3].record.Policy; got.ApprovalID != string(a.ID) || got.Effective != id.AllowWithObligation {
		t.Errorf("record: got %+v", got)
	}
	if !strings.Contains(string(last.Payload), `"step_event_id":"`+string(got.Event)+`"`) || !strings.Contains(string(last.Payload), `"transition":"consumed"`) {
		t.Errorf("statement: got %s", last.Payload)
	}
	if paid.EventID != got.Event || !strings.Contains(string(paid.Canonical), `"approval_id":"`+string(a.ID)+`"`) {
		t.Errorf("step: got %s", paid.Canonical)
	}
	again := o.record(red, o.run.ID, paying("pay", 70, a))[0]
	if !again.Replayed || again.Hash != got.Hash || again.Consumed == nil || *again.Consumed != *got.Consumed {
		t.Errorf("again: got %+v, %+v", again, again.Consumed)
	}
	_, err = o.workflows.Record(t.Context(), red, "ik_1", o.run.ID, []workflow.Step{paying("pay-again", 70, a)})
	wantFault(t, "another step", err, fault.Gone, "The approval was already consumed")
	o.Pass(5 * time.Minute)
	if again := o.record(red, o.run.ID, paying("pay", 70, a))[0]; again.Consumed == nil || again.Consumed.Grant != "" {
		t.Errorf("when the grant is over: got %+v", again.Consumed)
	}
	if want := []string{"requested by ik_1", "approved by acc_bob", "consumed by ik_1"}; !slices.Equal(o.statements(red), want) {
		t.Errorf("ledger: got %q, want %q", o.statements(red), want)
	}
	o.checkRoot(red, o.complete(red, o.run.ID))
	if size := o.State(t, blue).Size(); size != 1 {
		t.Errorf("the other organization's ledger has %d events", size)
	}
}

// Two approvals in one request share the append, and the first grant key is recorded once.
func TestStepsConsumeTogether(t *testing.T) {
	o := newOffice(t)
	o.run = o.start(red, beginning("ext"))
	a, b := o.agreed(red, 70), o.agreed(red, 80)
	got := o.record(red, o.run.ID, paying("a", 70, a), paying("b", 80, b), pay("c", 5))
	if got[0].Consumed.Grant == got[1].Consumed.Grant || got[2].Consumed != nil {
		t.Errorf("got %+v", got)
	}
	keys := 0
	for _, s := range o.Audit(t, red) {
		if s.Kind == "ledger_log_key" {
			keys++
		}
	}
	if keys != 1 || o.status(red, a) != approval.Consumed || o.status(red, b) != approval.Consumed {
		t.Errorf("%d keys of grants, %s, %s", keys, o.status(red, a), o.status(red, b))
	}
	if tally, err := o.Engine.Get(t.Context(), red, "approval_tally", "ik_1"); err != nil || string(tally.Value) != `{"open":0}` {
		t.Errorf("tally: got %s, %v", tally.Value, err)
	}
}

// A step of a subject uses the approval for this subject, and its event is on behalf of it.
func TestStepOfSubject(t *testing.T) {
	o := newOffice(t)
	o.run = o.start(red, beginning("ext"))
	o.behalf = &event.OnBehalfOf{Issuer: "https://login.example", Subject: "alice", Actors: []event.Actor{{Subject: "planner"}}}
	s := paying("pay", 70, o.agreed(red, 70))
	s.OnBehalfOf = o.behalf
	got := o.record(red, o.run.ID, s)
	if got[0].Consumed == nil || got[0].Consumed.Grant == "" {
		t.Fatalf("got %+v", got[0])
	}
	if again := o.record(red, o.run.ID, s); !again[0].Replayed || again[0].Index != got[0].Index {
		t.Errorf("repeated: got %+v", again[0])
	}
	s.OnBehalfOf = nil
	_, err := o.workflows.Record(t.Context(), red, "ik_1", o.run.ID, []workflow.Step{s})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("the same step without its subject: got %v", err)
	}
	stored, err := o.Ledgers.Event(t.Context(), o.State(t, red), got[0].Index, storage.FieldEnvelope)
	if err != nil || !strings.Contains(string(stored.Envelope), `"on_behalf_of":`+string(o.behalf.Canonical())) {
		t.Errorf("got %s, %v", stored.Envelope, err)
	}
}

// If an approval cannot be consumed, all steps of the request are rejected, and none is stored.
func TestStepRefusedByApproval(t *testing.T) {
	const another = "The approval is for another agent, tool, payload or subject"
	alice := &event.OnBehalfOf{Issuer: "https://login.example", Subject: "alice"}
	const foreign = "approval_id is not an approval that this ingest key requested"
	revoke := func(o *office, a approval.Approval) {
		if err := o.approvals.Revoke(o.t.Context(), red, "acc_eve", a.ID, approval.Remark{}); err != nil {
			o.t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		do      func(o *office, a approval.Approval)
		change  func(o *office, s *workflow.Step)
		kind    fault.Kind
		message string
		stated  string // last statement about the approval
	}{
		"expired":                  {func(o *office, _ approval.Approval) { o.Pass(601 * time.Second) }, nil, fault.Gone, "The approval has expired", "expired by operator"},
		"revoked":                  {revoke, nil, fault.Conflict, "The approval is revoked", "revoked by acc_eve"},
		"invalidated":              {func(o *office, _ approval.Approval) { o.activate(red, "open", `[]`) }, nil, fault.Conflict, "The active policy no longer requires this approval", "invalidated by operator"},
		"a lost vote":              {func(o *office, _ approval.Approval) { o.left["acc_bob"] = true }, nil, fault.Conflict, "An approver may no longer decide on this: the approval is pending again", "pending by operator"},
		"another tool":             {nil, func(_ *office, s *workflow.Step) { s.Tool = "acme.pays" }, fault.Conflict, another, "approved by acc_bob"},
		"more money":               {nil, func(_ *office, s *workflow.Step) { s.Payload = pay("", 71).Payload }, fault.Conflict, another, "approved by acc_bob"},
		"of nobody, for a subject": {nil, func(_ *office, s *workflow.Step) { s.OnBehalfOf = alice }, fault.Conflict, another, "approved by acc_bob"},
		"of another subject": {nil, func(o *office, s *workflow.Step) {
			o.behalf = alice
			s.Approval = o.agreed(red, 70).ID
			s.OnBehalfOf = &event.OnBehalfOf{Issuer: "https://login.example", Subject: "bob"}
		}, fault.Conflict, another, "approved by acc_bob"},
		"of a subject, for nobody": {nil, func(o *office, s *workflow.Step) {
			o.behalf = alice
			s.Approval = o.agreed(red, 70).ID
		}, fault.Conflict, another, "approved by acc_bob"},
		"pending": {nil, func(o *office, s *workflow.Step) {
			s.Payload = pay("", 99).Payload
			s.Approval = o.ask(red, "ik_1", 99).ID
		},
			fault.Conflict, "The approval is still pending", "requested by ik_1"},
		"denied": {nil, func(o *office, s *workflow.Step) {
			a := o.ask(red, "ik_1", 99)
			o.vote(red, a, approval.Deny)
			s.Payload, s.Approval = pay("", 99).Payload, a.ID
		}, fault.Conflict, "The approval is denied", "denied by acc_bob"},
		"another key's": {nil, func(o *office, s *workflow.Step) { s.Approval = o.ask(red, "ik_2", 70).ID }, fault.NotFound, foreign, "requested by ik_2"},
		"nobody's":      {nil, func(_ *office, s *workflow.Step) { s.Approval = "apr_0" }, fault.NotFound, foreign, "approved by acc_bob"},
		"the other organization's": {nil, func(o *office, s *workflow.Step) {
			run := o.start(blue, beginning("ext"))
			mine := o.run
			o.run = run
			s.Approval = o.agreed(blue, 70).ID
			o.run = mine
		}, fault.NotFound, foreign, "approved by acc_bob"},
		"another agent's": {nil, func(o *office, s *workflow.Step) {
			mine := o.run
			o.run.Agent = o.bot[red]
			s.Approval = o.agreed(red, 70).ID
			o.run = mine
		}, fault.Conflict, another, "approved by acc_bob"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.run = o.start(red, beginning("ext"))
			a := o.agreed(red, 70)
			s := paying("pay", 70, a)
			if tt.do != nil {
				tt.do(o, a)
			}
			if tt.change != nil {
				tt.change(o, &s)
			}
			_, err := o.workflows.Record(t.Context(), red, "ik_1", o.run.ID, []workflow.Step{s})
			wantFault(t, "alone", err, tt.kind, tt.message)
			_, err = o.workflows.Record(t.Context(), red, "ik_1", o.run.ID, []workflow.Step{step("first"), s})
			if f := fault.Of(err); f.Message != "[1].approval_id: "+tt.message && name != "a lost vote" {
				t.Errorf("in a list: got %v", err)
			}
			if got := len(o.steps(red)); got != 0 {
				t.Errorf("%d steps were recorded", got)
			}
			if statements := o.statements(red); statements[len(statements)-1] != tt.stated {
				t.Errorf("ledger: got %q, want last %s", statements, tt.stated)
			}
			if got := o.record(red, o.run.ID, step("first")); got[0].Replayed {
				t.Errorf("a step of the refused list was there")
			}
		})
	}
}

// If the policy denies a step, its approval does not change.
func TestDeniedStepKeepsApproval(t *testing.T) {
	o := newOffice(t)
	o.run = o.start(red, beginning("ext"))
	a := o.agreed(red, 70)
	o.activate(red, "robots", strings.Replace(asking, `[
	`, `[{"rule_id":"robots","tool":"acme.pay","agents":["`+string(o.run.Agent)+`"],"when":"actor_type == \"system\"","decision":"deny"},`, 1))
	got := o.record(red, o.run.ID, paying("pay", 70, a))[0]
	if got.Policy.Effective != id.Deny || got.Consumed != nil || o.status(red, a) != approval.Approved {
		t.Errorf("got %+v, %s", got, o.status(red, a))
	}
	if again := o.record(red, o.run.ID, paying("pay", 70, a))[0]; !again.Replayed || again.Consumed != nil {
		t.Errorf("again: got %+v", again)
	}
}

func TestStepWithMalformedApproval(t *testing.T) {
	o := newOffice(t)
	o.run = o.start(red, beginning("ext"))
	a := o.agreed(red, 70)
	result := paying("pay", 70, a)
	result.Payload = []byte(`{"parent_event_id":"stp_1","phase":"result"}`)
	toolless := step("s")
	toolless.Approval = a.ID
	for name, tt := range map[string]struct {
		steps   []workflow.Step
		message string
	}{
		"a malformed id": {[]workflow.Step{paying("pay", 70, approval.Approval{ID: "a b"})}, "approval_id must match [A-Za-z0-9._:-]{1,128}, not . or .."},
		"a long id":      {[]workflow.Step{paying("pay", 70, approval.Approval{ID: approval.ID(strings.Repeat("a", 129))})}, "approval_id must match [A-Za-z0-9._:-]{1,128}, not . or .."},
		"no tool":        {[]workflow.Step{toolless}, "approval_id requires tool_name"},
		"a result":       {[]workflow.Step{result}, "approval_id belongs to the step before the act, not to its result"},
		"twice":          {[]workflow.Step{paying("a", 70, a), paying("b", 70, a)}, "[1].approval_id is already used by an earlier step in the list"},
	} {
		_, err := o.workflows.Record(t.Context(), red, "ik_1", o.run.ID, tt.steps)
		wantFault(t, name, err, fault.Invalid, tt.message)
	}
	o.record(red, o.run.ID, pay("known", 70))
	_, err := o.workflows.Record(t.Context(), red, "ik_1", o.run.ID, []workflow.Step{paying("known", 70, a)})
	wantFault(t, "a step of before, now with an approval", err, fault.Invalid, "step_key and attempt were used with another step")
}

// Many steps of two processes compete for one approval: one of them consumes it.
func TestApprovalConsumedOnce(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		o := newOfficeOn(t, ledgertest.On(t, open(t)))
		o.run = o.start(red, beginning("ext"))
		other := o.start(red, beginning("other"))
		desks := []*workflow.Workflows{o.workflows, o.desk()}
		for round := range 5 {
			a := o.agreed(red, 70)
			var group sync.WaitGroup
			var mu sync.Mutex
			consumed := 0
			for i := range 12 {
				group.Go(func() {
					run := []workflow.ID{o.run.ID, other.ID}[i%2]
					got, err := desks[i/2%2].Record(t.Context(), red, "ik_1", run, []workflow.Step{paying(fmt.Sprint("pay-", round, "-", i), 70, a)})
					if err != nil {
						wantFault(t, "a late one", err, fault.Gone, "The approval was already consumed")
						return
					}
					mu.Lock()
					defer mu.Unlock()
					if got[0].Consumed != nil && got[0].Consumed.Grant != "" {
						consumed++
					}
				})
			}
			group.Wait()
			if steps := len(o.steps(red)); consumed != 1 || steps != round+1 {
				t.Fatalf("round %d: consumed %d times by %d steps", round, consumed, steps)
			}
		}
	})
}

// However the append ends, a retry of the request leads to one step, one consumption and one grant.
func TestConsumingStepThroughFailures(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{
		"refused": storagetest.Refused, "request lost": storagetest.RequestLost, "answer lost": storagetest.AnswerLost,
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			o.run = o.start(red, beginning("ext"))
			a := o.agreed(red, 70)
			o.record(red, o.run.ID, step("first"))
			o.once(red, failure)
			first, err := o.workflows.Record(t.Context(), red, "ik_1", o.run.ID, []workflow.Step{paying("pay", 70, a)})
			o.Store.Fail(nil)
			got := o.record(red, o.run.ID, paying("pay", 70, a))[0]
			if got.Consumed == nil || got.Consumed.Grant == "" || o.status(red, a) != approval.Consumed {
				t.Errorf("again: got %+v, %s", got.Consumed, o.status(red, a))
			}
			if err == nil && *first[0].Consumed != *got.Consumed {
				t.Errorf("two grants: %+v, %+v", first[0].Consumed, got.Consumed)
			}
			want := []string{"requested by ik_1", "approved by acc_bob", "consumed by ik_1"}
			if steps := len(o.steps(red)); steps != 2 || !slices.Equal(o.statements(red), want) {
				t.Errorf("%d steps, ledger %q", steps, o.statements(red))
			}
		})
	}
}

// The service dies before or after any write of a consuming step, and a new process starts on the stored state.
func TestConsumingStepThroughDeaths(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		for _, after := range []bool{false, true} {
			for n, died := 0, true; died; n++ {
				m := &enginetest.Mortal{Engine: open(t)}
				o := newOfficeOn(t, ledgertest.On(t, m))
				o.run = o.start(red, beginning("ext"))
				a := o.agreed(red, 70)
				m.DieAt(n, after)
				first, _ := o.workflows.Record(t.Context(), red, "ik_1", o.run.ID, []workflow.Step{paying("pay", 70, a)})
				if died = m.Dead(); !died && n < 1 {
					t.Error("a step without a write")
				}
				if err := o.Ledgers.Close(); err != nil {
					t.Fatal(err)
				}
				w := &world{Service: o.Again(t, m.Engine), t: t, orgs: o.orgs, bot: o.bot}
				w.open()
				o = &office{world: w, left: o.left, run: o.run}
				o.staff()
				got := o.record(red, o.run.ID, paying("pay", 70, a))[0]
				if got.Consumed == nil || got.Consumed.Grant == "" {
					t.Fatalf("death at %d, done %v: got %+v", n, after, got)
				}
				if first != nil && first[0].Consumed.Grant != got.Consumed.Grant {
					t.Errorf("death at %d, done %v: two grants", n, after)
				}
				if steps, statements := len(o.steps(red)), o.statements(red); steps != 1 || len(statements) != 3 || statements[2] != "consumed by ik_1" {
					t.Errorf("death at %d, done %v: %d steps, ledger %q", n, after, steps, statements)
				}
			}
		}
	})
}
