package approval_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
)

// wantLost checks that an approval could not be used because a vote counts no more.
func wantLost(t *testing.T, name string, err error) {
	t.Helper()
	var told *fault.Error
	if !errors.As(err, &told) || told.Kind != fault.Conflict || told.Code != "quorum_lost" ||
		told.Message != "Somebody who agreed may not decide on this any more: the approval is pending again" {
		t.Errorf("%s: got %v", name, err)
	}
}

// The quorum is counted again when the permission is taken: among those who hold the role
// now. Without it the approval is pending again.
func TestQuorumIsCountedAtConsume(t *testing.T) {
	for name, lose := range map[string]func(*world){
		"another role": func(w *world) { w.people.set(bob, account.Member) },
		"removed":      func(w *world) { w.people.remove(bob) },
	} {
		w := newWorld(t)
		a, other := w.ask(red, w.question(red)), w.ask(blue, w.question(blue))
		w.approve(red, a, bob)
		w.approve(blue, other, eve)
		lose(w)
		wantLost(t, name, consumeErr(w, red, a))
		if got, err := w.approvals.Find(t.Context(), red, a.ID); err != nil || got.Status != approval.Pending || len(got.Votes) != 0 {
			t.Errorf("%s: got %+v, %v, want it pending without votes", name, got, err)
		}
		wantKind(t, name+", again", consumeErr(w, red, a), fault.Conflict)
		if err := consumeErr(w, blue, other); err != nil {
			t.Errorf("%s: the neighbour: %v", name, err)
		}
		if again, made, err := w.approvals.Ask(t.Context(), red, w.question(red)); err != nil || made || again.ID != a.ID {
			t.Errorf("%s: asked again: got %s, made %v, %v", name, again.ID, made, err)
		}
		w.people.set(bob, account.Approver) // whoever has the role back votes anew
		w.approve(red, a, bob)
		if err := consumeErr(w, red, a); err != nil {
			t.Errorf("%s: with the role back: %v", name, err)
		}
	}
}

// Of two votes one is lost: one more is enough.
func TestOneOfTwoVotesIsLost(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "two", 2)
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	w.approve(red, a, eve)
	w.people.set(eve, account.Member)
	wantLost(t, "one of two", consumeErr(w, red, a))
	w.approve(red, a, ann)
	if err := consumeErr(w, red, a); err != nil {
		t.Error(err)
	}
}

// Whoever registered an active key of the agent can't decide on what the agent asks, also
// when the key came after the vote. Someone else's agent, and the neighbour, are not concerned.
func TestWhoRegisteredAKeyCantDecide(t *testing.T) {
	w := newWorld(t)
	a, other := w.ask(red, w.question(red)), w.ask(blue, w.question(blue))
	key := w.register(red, eve)
	_, err := w.vote(red, a, eve, approval.Approve)
	wantKind(t, "with a key of hers", err, fault.Forbidden)
	if _, err := w.vote(blue, other, eve, approval.Approve); err != nil {
		t.Errorf("in the other organization: %v", err)
	}
	if _, err := w.agents.RetireKey(t.Context(), red, string(ann), w.keys[red].Agent, key); err != nil {
		t.Fatal(err)
	}
	w.approve(red, a, eve)
	w.register(red, eve)
	wantLost(t, "a key after the vote", consumeErr(w, red, a))
	w.people.allow(true)
	w.approve(red, a, eve)
	if err := consumeErr(w, red, a); err != nil {
		t.Errorf("with self-review: %v", err)
	}
}

// However an agent writes for whom it acts, that person can't decide.
func TestPrincipalsAreFound(t *testing.T) {
	for principal, want := range map[string]bool{
		"acc_bob@example.com": false, " Acc_Bob@EXAMPLE.com\u00a0": false, "mailto:acc_bob%40example.com": false, "Bob <acc_bob@example.com>": false,
		"ACC_BOB": false, "bob": true, "": true,
	} {
		w := newWorld(t)
		q := w.question(red)
		q.Principal = principal
		a := w.ask(red, q)
		if _, err := w.vote(red, a, bob, approval.Approve); (err == nil) != want {
			t.Errorf("%q: bob's vote: %v", principal, err)
		}
	}
}

// Two accounts that have or had one address are one person, unless the address is proved for both.
func TestUnprovedAddressIsNoSecondPerson(t *testing.T) {
	for _, proved := range []bool{false, true} {
		w := newWorld(t)
		w.activate(red, "two", 2)
		w.people.proved = proved
		w.people.moves(eve, string(bob)+"@example.com") // bob's address of now
		a := w.ask(red, w.question(red))
		w.approve(red, a, eve)
		_, err := w.vote(red, a, bob, approval.Approve)
		if (err == nil) != proved {
			t.Errorf("proved %v: the second vote: %v", proved, err)
		}
		if !proved && fault.Of(err).Code != "address_unproved" {
			t.Errorf("got %v", err)
		}

		w = newWorld(t)
		w.people.proved = proved
		w.people.moves(eve, string(bob)+"@example.com")
		w.register(red, eve)
		a = w.ask(red, w.question(red))
		if _, err := w.vote(red, a, bob, approval.Approve); (err == nil) != proved {
			t.Errorf("proved %v: bob decides on what eve asks: %v", proved, err)
		}
		list, err := w.approvals.Obstacles(t.Context(), red, bob, []approval.Approval{a})
		if err != nil || (list[0] == approval.ObstacleOwn) == proved {
			t.Errorf("proved %v: got obstacle %q, %v", proved, list[0], err)
		}
	}
}

// A vote that was cast before two accounts came to have one address counts no more beside the other one.
func TestVotesOfOneAddressAreCountedOnce(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "two", 2)
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	w.approve(red, a, eve)
	w.people.moves(eve, string(bob)+"@example.com")
	wantLost(t, "one person twice", consumeErr(w, red, a))
	w.approve(red, a, ann)
	if err := consumeErr(w, red, a); err != nil {
		t.Error(err)
	}
}

// register gives a tenant's agent another key in the name of an account.
func (w *world) register(tenant id.Tenant, who account.ID) id.Key {
	w.t.Helper()
	private, name := edkey.NewPrivate(), w.keys[tenant].Agent
	proof := private.Sign(agent.ProofMessage(ledgertest.Organization(tenant), name, "", private.Public()))
	public := private.Public().Bytes()
	k, err := w.agents.RegisterKey(w.t.Context(), tenant, string(who), name, agent.Registration{
		PublicKey: base64.StdEncoding.EncodeToString(public[:]), Proof: base64.StdEncoding.EncodeToString(proof[:]),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return k.ID
}
