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

// wantLost checks that an approval cannot be consumed because a vote no longer counts.
func wantLost(t *testing.T, name string, err error) {
	t.Helper()
	var told *fault.Error
	if !errors.As(err, &told) || told.Kind != fault.Conflict || told.Code != "quorum_lost" ||
		told.Message != "An approver may no longer decide on this: the approval is pending again" {
		t.Errorf("%s: got %v", name, err)
	}
}

// The quorum is counted again at consumption, among the users who have the role at that time. Without a quorum, the
// approval is pending again.
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
		w.people.set(bob, account.Approver) // a user whose role is restored votes again
		w.approve(red, a, bob)
		if err := consumeErr(w, red, a); err != nil {
			t.Errorf("%s: with the role back: %v", name, err)
		}
	}
}

// If one of two votes no longer counts, one more vote is enough.
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

// A user who registered an active key of an agent cannot decide on that agent's requests, even if the key was
// registered after the vote. Other agents and the other organization are not affected.
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

// However an agent spells its principal, that user cannot decide.
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

// Two accounts that share a current or former address count as one person, unless both have proved the address.
func TestUnprovedAddressIsNoSecondPerson(t *testing.T) {
	for _, proved := range []bool{false, true} {
		w := newWorld(t)
		w.activate(red, "two", 2)
		w.people.proved = proved
		w.people.moves(eve, string(bob)+"@example.com") // bob's current address
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

// If two accounts come to share an address after they voted, only one of the votes counts.
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

// register gives a tenant's agent another key, registered by an account.
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
