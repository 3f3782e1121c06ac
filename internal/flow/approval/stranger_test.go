package approval_test

import (
	"slices"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// In every state of an approval, recorded or not, a stranger gets fault.NotFound and causes no entry in any ledger,
// under any name.
func TestStrangersWriteNothing(t *testing.T) {
	states := map[string]func(w *world, a approval.Approval){
		"pending":  func(*world, approval.Approval) {},
		"approved": func(w *world, a approval.Approval) { w.approve(red, a, bob) },
		"denied": func(w *world, a approval.Approval) {
			if _, err := w.vote(red, a, bob, approval.Deny); err != nil {
				w.t.Fatal(err)
			}
		},
		"expired, not stated":              func(w *world, _ approval.Approval) { w.Pass(time.Hour) },
		"approved and expired, not stated": func(w *world, a approval.Approval) { w.approve(red, a, bob); w.Pass(time.Hour) },
		"invalidated, not stated":          func(w *world, _ approval.Approval) { w.activate(red, "newer", 2) },
		"rests on a lost vote":             func(w *world, a approval.Approval) { w.approve(red, a, bob); w.people.set(bob, account.Member) },
		"cancelled":                        func(w *world, a approval.Approval) { _ = w.approvals.Cancel(w.t.Context(), red, a.IngestKeyID, a.ID) },
	}
	callers := map[string]struct {
		want fault.Kind
		call func(w *world, a approval.Approval) error
	}{
		"poll by another key": {fault.NotFound, func(w *world, a approval.Approval) error {
			_, err := w.approvals.Get(w.t.Context(), red, "ik_ann", a.ID, 0)
			return err
		}},
		"cancel by another key": {fault.NotFound, func(w *world, a approval.Approval) error {
			return w.approvals.Cancel(w.t.Context(), red, "ik_ann", a.ID)
		}},
		"consume by another key": {fault.NotFound, func(w *world, a approval.Approval) error {
			claim := w.claim(red, a)
			claim.IngestKeyID = "ik_ann"
			_, err := w.approvals.Consume(w.t.Context(), red, a.ID, claim)
			return err
		}},
		"poll by the neighbour": {fault.NotFound, func(w *world, a approval.Approval) error {
			_, err := w.approvals.Get(w.t.Context(), blue, a.IngestKeyID, a.ID, 0)
			return err
		}},
		"cancel by the neighbour": {fault.NotFound, func(w *world, a approval.Approval) error {
			return w.approvals.Cancel(w.t.Context(), blue, a.IngestKeyID, a.ID)
		}},
		"consume by the neighbour": {fault.NotFound, func(w *world, a approval.Approval) error {
			_, err := w.approvals.Consume(w.t.Context(), blue, a.ID, w.claim(red, a))
			return err
		}},
		"look by the neighbour": {fault.NotFound, func(w *world, a approval.Approval) error {
			_, err := w.approvals.Find(w.t.Context(), blue, a.ID)
			return err
		}},
		"vote in the neighbour": {fault.NotFound, func(w *world, a approval.Approval) error {
			_, err := w.vote(blue, a, eve, approval.Approve)
			return err
		}},
		"revoke in the neighbour": {fault.NotFound, func(w *world, a approval.Approval) error {
			return w.approvals.Revoke(w.t.Context(), blue, eve, a.ID, approval.Remark{})
		}},
		"vote without the role": {fault.Forbidden, func(w *world, a approval.Approval) error {
			_, err := w.vote(red, a, "acc_member", approval.Approve)
			return err
		}},
		"vote of a stranger": {fault.Forbidden, func(w *world, a approval.Approval) error {
			_, err := w.vote(red, a, "acc_nobody", approval.Approve)
			return err
		}},
		"consume without a proof": {fault.Invalid, func(w *world, a approval.Approval) error {
			_, err := w.approvals.Consume(w.t.Context(), red, a.ID, approval.Claim{IngestKeyID: a.IngestKeyID, Action: a.ActionDigest})
			return err
		}},
	}
	for state, into := range states {
		w := newWorld(t)
		a := w.ask(red, w.question(red))
		into(w, a)
		sizes := func() [2]id.Index { return [2]id.Index{w.State(t, red).Size(), w.State(t, blue).Size()} }
		before := sizes()
		for name, c := range callers {
			wantKind(t, state+": "+name, c.call(w, a), c.want)
			if got := sizes(); got != before {
				t.Errorf("%s: %s wrote: sizes %v, want %v", state, name, got, before)
				before = got
			}
		}
	}
}

// Each statement names its actor: the ingest key that asked, the user, or the operator for what the service records
// itself, whichever caller triggered it.
func TestWhoseDoingAStatementIs(t *testing.T) {
	cancel := func(w *world, a approval.Approval) { _ = w.approvals.Cancel(w.t.Context(), red, a.IngestKeyID, a.ID) }
	consume := func(w *world, a approval.Approval) { _ = consumeErr(w, red, a) }
	revoke := func(w *world, a approval.Approval) {
		_ = w.approvals.Revoke(w.t.Context(), red, eve, a.ID, approval.Remark{})
	}
	vote := func(w *world, a approval.Approval) { _, _ = w.vote(red, a, eve, approval.Approve) }
	sweep := func(w *world, a approval.Approval) { _ = w.approvals.Sweep(w.t.Context()) }
	ask := func(w *world, _ approval.Approval) { _, _, _ = w.approvals.Ask(w.t.Context(), red, w.question(red)) }
	expire := func(w *world, _ approval.Approval) { w.Pass(time.Hour) }
	invalidate := func(w *world, _ approval.Approval) { w.activate(red, "newer", 2); w.approvals.PolicyChanged(red) }
	approve := func(w *world, a approval.Approval) { w.approve(red, a, bob) }
	lose := func(w *world, a approval.Approval) { w.people.set(bob, account.Member) }
	type steps []func(*world, approval.Approval)
	for name, c := range map[string]struct {
		do   steps
		want []string
	}{
		"cancelled":                   {steps{cancel}, []string{"cancelled by ik_operator"}},
		"revoked":                     {steps{revoke}, []string{"revoked by acc_eve"}},
		"consumed":                    {steps{approve, consume}, []string{"approved by acc_bob", "consumed by ik_operator"}},
		"expired, then cancelled":     {steps{expire, cancel}, []string{"expired by operator"}},
		"expired, then consumed":      {steps{approve, expire, consume}, []string{"approved by acc_bob", "expired by operator"}},
		"expired, then revoked":       {steps{expire, revoke}, []string{"expired by operator"}},
		"expired, then voted":         {steps{expire, vote}, []string{"expired by operator"}},
		"expired, then swept":         {steps{expire, sweep}, []string{"expired by operator"}},
		"expired, then asked anew":    {steps{expire, ask}, []string{"expired by operator"}},
		"invalidated, then cancelled": {steps{invalidate, cancel}, []string{"invalidated by operator"}},
		"invalidated, then consumed":  {steps{approve, invalidate, consume}, []string{"approved by acc_bob", "invalidated by operator"}},
		"invalidated, then voted":     {steps{invalidate, vote}, []string{"invalidated by operator"}},
		"invalidated, then swept":     {steps{invalidate, sweep}, []string{"invalidated by operator"}},
		"invalidated, then asked":     {steps{invalidate, ask}, []string{"invalidated by operator"}},
		"a vote lost":                 {steps{approve, lose, consume}, []string{"approved by acc_bob", "pending by operator"}},
		"a vote lost, another vote":   {steps{approve, lose, consume, vote, consume}, []string{"approved by acc_bob", "pending by operator", "approved by acc_eve", "consumed by ik_operator"}},
	} {
		w := newWorld(t)
		a := w.ask(red, w.question(red))
		for _, do := range c.do {
			do(w, a)
		}
		if got, want := w.transitions(red, a), append([]string{"requested by ik_operator"}, c.want...); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
		if got := len(w.Audit(t, blue)); got != 1 {
			t.Errorf("%s: the neighbour's ledger has %d statements", name, got)
		}
	}
}

// The first grant generates its key, as an act of the service.
func TestWhoMakesTheGrantKey(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	if err := consumeErr(w, red, a); err != nil {
		t.Fatal(err)
	}
	for _, said := range w.Audit(t, red) {
		if said.Kind == "ledger_log_key" && said.Principal != "operator" {
			t.Errorf("got %+v", said)
		}
	}
}
