package approval_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

// onEngines runs a test on the in-memory store and on each engine.
func onEngines(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("memory", func(t *testing.T) { test(t, newWorld(t)) })
	enginetest.Each(t, func(t *testing.T, open func(testing.TB) storage.Engine) {
		test(t, newWorldOn(t, ledgertest.On(t, open(t))))
	})
}

func TestConsumeOnce(t *testing.T) { onEngines(t, consumeOnce) }

func consumeOnce(t *testing.T, w *world) {
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	const callers = 20
	var group sync.WaitGroup
	grants := make([]string, callers)
	for i := range callers {
		group.Go(func() {
			var err error
			if grants[i], err = w.approvals.Consume(t.Context(), red, a.ID, w.claim(red, a)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, g := range grants {
		if g != grants[0] {
			t.Fatalf("two grants:\n%s\n%s", grants[0], g)
		}
	}
	if got := w.transitions(red, a); len(got) != 3 {
		t.Errorf("ledger: got %q, want three", got)
	}
	w.Pass(300*time.Second - time.Millisecond)
	if again, err := w.approvals.Consume(t.Context(), red, a.ID, w.claim(red, a)); err != nil || again != grants[0] {
		t.Errorf("at the end of its life: got %q, %v", again, err)
	}
	w.Pass(time.Millisecond)
	wantKind(t, "after its life", consumeErr(w, red, a), fault.Gone)
}

// One user votes many times concurrently, as do others: each user counts once.
func TestVotesAtOnce(t *testing.T) { onEngines(t, votesAtOnce) }

func votesAtOnce(t *testing.T, w *world) {
	w.activate(red, "three", 3)
	a := w.ask(red, w.question(red))
	var group sync.WaitGroup
	var mu sync.Mutex
	counted := map[account.ID]int{}
	for _, who := range []account.ID{ann, bob} {
		for range 8 {
			group.Go(func() {
				if _, err := w.vote(red, a, who, approval.Approve); err == nil {
					mu.Lock()
					defer mu.Unlock()
					counted[who]++
				} else if !fault.Is(err, fault.Conflict) {
					t.Error(err)
				}
			})
		}
	}
	group.Wait()
	if counted[ann] != 1 || counted[bob] != 1 || w.status(red, a) != approval.Pending {
		t.Errorf("two of three: counted %v, %s", counted, w.status(red, a))
	}
	w.approve(red, a, eve)
	if got := w.transitions(red, a); len(got) != 4 || got[3] != "approved by acc_eve" {
		t.Errorf("ledger: got %q", got)
	}
}

// Votes, consumption, cancellation, revocation, a new policy, expiry and the sweep race for one approval, in varying
// combinations. The ledger contains a sequence that the rules allow, and every answer agrees with it.
func TestEverythingAtOnce(t *testing.T) { onEngines(t, everythingAtOnce) }

func everythingAtOnce(t *testing.T, w *world) {
	const rounds = 24
	random := rand.New(rand.NewPCG(7, 7))
	ends := map[string]int{}
	for round := range rounds {
		r := &race{world: w, name: fmt.Sprint("round-", round), answered: map[string]error{}}
		r.begin(round%2 == 0)
		r.run(random.Perm(len(r.contenders()))[:2+round%3])
		if err := w.approvals.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		ends[r.check()]++
		if t.Failed() {
			return
		}
	}
	t.Logf("ends: %v", ends)
	if len(ends) < 4 {
		t.Errorf("all rounds ended in %v: nobody raced", ends)
	}
}

// race is one approval and the actors that race for it.
type race struct {
	*world
	name string
	a    approval.Approval

	mu       sync.Mutex
	answered map[string]error // by transition and principal
	grants   []string
}

// begin requests an approval under a new policy. One of the two required users has approved it.
func (r *race) begin(agreed bool) {
	r.activate(red, r.name, 2)
	r.a = r.ask(red, r.question(red))
	r.approve(red, r.a, bob)
	if agreed {
		r.approve(red, r.a, ann)
	}
}

func (r *race) answer(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, known := r.answered[what]; !known || before != nil { // once done, it remains done
		r.answered[what] = err
	}
}

func (r *race) contenders() []func() {
	ctx := r.t.Context()
	consume := func() {
		note, err := r.approvals.Consume(ctx, red, r.a.ID, r.claim(red, r.a))
		r.answer("consumed by ik_operator", err)
		if err == nil {
			r.mu.Lock()
			r.grants = append(r.grants, note)
			r.mu.Unlock()
		}
	}
	return []func(){
		consume,
		func() { r.answer("cancelled by ik_operator", r.approvals.Cancel(ctx, red, "ik_operator", r.a.ID)) },
		func() {
			r.answer("revoked by acc_eve", r.approvals.Revoke(ctx, red, eve, r.a.ID, approval.Remark{}))
		},
		func() {
			_, err := r.vote(red, r.a, eve, approval.Approve)
			r.answer("approved by acc_eve", err)
			consume()
		},
		func() {
			_, err := r.vote(red, r.a, ann, approval.Deny)
			r.answer("denied by acc_ann", err)
		},
		func() {
			r.activate(red, r.name+"-next", 3)
			r.approvals.PolicyChanged(red)
		},
		func() {
			r.Pass(601 * time.Second)
			if err := r.approvals.Sweep(ctx); err != nil {
				r.t.Error(err)
			}
		},
	}
}

func (r *race) run(which []int) {
	contenders := r.contenders()
	start := make(chan struct{})
	var group sync.WaitGroup
	for _, i := range which {
		group.Go(func() {
			<-start
			contenders[i]()
		})
	}
	close(start)
	group.Wait()
}

// check reads the ledger as a naive auditor would, and returns how the approval ended.
func (r *race) check() string {
	r.t.Helper()
	o := oracle{t: r.t, name: r.name, digest: r.a.ActionDigest.String(), voters: map[string]bool{}}
	happened := map[string]bool{}
	begun := false
	for _, said := range r.Audit(r.t, red) {
		if said.Kind == "ledger_policy_activated" && begun {
			o.another = true
		}
		if said.Kind != "ledger_approval" || !strings.Contains(said.Payload, string(r.a.ID)) {
			continue
		}
		begun = true
		happened[o.step(said)] = true
	}
	if got := string(r.status(red, r.a)); got != o.state {
		r.t.Errorf("%s: it is %s, and the ledger says %s", r.name, got, o.state)
	}
	for what, err := range r.answered {
		if (err == nil) != happened[what] {
			r.t.Errorf("%s: %q was answered %v, and the ledger has %v", r.name, what, err, happened)
		}
	}
	for _, note := range r.grants {
		if note != r.grants[0] {
			r.t.Errorf("%s: two grants", r.name)
		}
	}
	return o.state
}

// oracle checks the statements about one approval with a quorum of two.
type oracle struct {
	t       testing.TB
	name    string
	digest  string
	state   string
	steps   int
	voters  map[string]bool
	another bool // another policy was activated
}

// step checks that a statement is allowed next, and returns the transition and its actor.
func (o *oracle) step(said ledgertest.Statement) string {
	o.t.Helper()
	var p struct {
		Transition string `json:"transition"`
		Digest     string `json:"action_digest"`
		Step       int    `json:"step"`
	}
	if err := json.Unmarshal([]byte(said.Payload), &p); err != nil {
		o.t.Fatal(err)
	}
	o.steps++
	ok := p.Step == o.steps && p.Digest == o.digest
	open := o.state == "pending" || o.state == "approved"
	switch p.Transition {
	case "requested":
		ok = ok && o.state == ""
		o.state = "pending"
	case "voted", "approved", "denied":
		ok = ok && o.state == "pending" && !o.voters[said.Principal] && !o.another
		o.voters[said.Principal] = true
		ok = ok && (p.Transition == "denied" || (p.Transition == "approved") == (len(o.voters) == 2))
		if p.Transition != "voted" {
			o.state = p.Transition
		}
	case "consumed":
		ok = ok && o.state == "approved" && !o.another
		o.state = "consumed"
	case "cancelled", "revoked":
		ok = ok && open && !o.another
		o.state = p.Transition
	case "invalidated":
		ok = ok && open && o.another
		o.state = p.Transition
	case "expired":
		ok = ok && open
		o.state = p.Transition
	default:
		ok = false
	}
	if !ok {
		o.t.Errorf("%s: step %d, %s by %s, may not be", o.name, p.Step, p.Transition, said.Principal)
	}
	return p.Transition + " by " + said.Principal
}

// An agent's key is revoked while it signs a proof: in ledger order, no proof of a revoked key counts.
func TestConsumeBesideRevocation(t *testing.T) { onEngines(t, consumeBesideRevocation) }

func consumeBesideRevocation(t *testing.T, w *world) {
	for round := range 6 {
		_, made, err := w.agents.CreateAgent(t.Context(), red, "acc_rules", agent.Wanted{})
		if err != nil {
			t.Fatal(err)
		}
		w.keys[red] = made
		a := w.ask(red, w.question(red))
		w.approve(red, a, bob)
		var group sync.WaitGroup
		var consumed error
		start := make(chan struct{})
		group.Go(func() {
			<-start
			_, consumed = w.approvals.Consume(t.Context(), red, a.ID, w.claim(red, a))
		})
		group.Go(func() {
			<-start
			if _, err := w.agents.RevokeKey(t.Context(), red, "acc_ann", made.Agent, made.Key, agent.Revocation{}); err != nil {
				t.Error(err)
			}
		})
		close(start)
		group.Wait()
		revoked, happened := false, false
		for _, said := range w.Audit(t, red) {
			switch {
			case said.Kind == "ledger_key_revoked" && strings.Contains(said.Payload, string(made.Agent)):
				revoked = true
			case said.Kind == "ledger_approval" && strings.Contains(said.Payload, string(a.ID)) && strings.Contains(said.Payload, `"consumed"`):
				happened = true
				if revoked {
					t.Errorf("round %d: consumed with a key that was revoked before", round)
				}
			}
		}
		if happened != (consumed == nil) || consumed != nil && !fault.Is(consumed, fault.Invalid) {
			t.Errorf("round %d: consumed %v, answered %v", round, happened, consumed)
		}
	}
}
