package approval_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/member"
)

const mel = account.ID("acc_member") // may not vote

// represents makes a deputyship that runs from now on for a time.
func (w *world) represents(deputy, person account.ID, lasts time.Duration) member.Deputyship {
	now := id.InstantOf(w.Clock())
	return member.Deputyship{Person: person, Deputy: deputy, From: now, Until: now + id.Instant(lasts.Milliseconds())}
}

// A deputy without a voting role votes in the period and not before or after it, and the log names the represented member. The vote
// remains valid after the period, while the represented member may vote.
func TestDeputyVotes(t *testing.T) {
	w := newWorld(t)
	a, other := w.ask(red, w.question(red)), w.ask(blue, w.question(blue))
	_, err := w.vote(red, a, mel, approval.Approve)
	wantKind(t, "before", err, fault.Forbidden)
	w.people.represent(w.represents(mel, bob, time.Minute))
	w.approve(red, a, mel)
	w.approve(blue, other, mel)
	var found approval.Approval
	if found, err = w.approvals.Find(t.Context(), red, a.ID); err != nil || len(found.Votes) != 1 || found.Votes[0].DeputyFor != bob {
		t.Errorf("got %+v, %v", found.Votes, err)
	}
	said := w.Audit(t, red)
	if last := said[len(said)-1]; last.Principal != string(mel) || !strings.Contains(last.Payload, `"deputy_for":"acc_bob"`) {
		t.Errorf("ledger: got %s by %s", last.Payload, last.Principal)
	}
	w.Pass(time.Minute)
	q := w.question(red)
	q.Trace = "trc_2"
	late := w.ask(red, q)
	_, err = w.vote(red, late, mel, approval.Approve)
	wantKind(t, "after", err, fault.Forbidden)
	if err := consumeErr(w, red, a); err != nil {
		t.Errorf("after the period: %v", err)
	}
	w.people.set(bob, account.Auditor)
	wantLost(t, "the represented member may not vote", consumeErr(w, blue, other))
}

// A member and the deputy have one vote together, whoever votes first.
func TestDeputyAndMemberVoteOnce(t *testing.T) {
	for _, order := range [][]account.ID{{bob, mel}, {mel, bob}} {
		w := newWorld(t)
		w.activate(red, "two", 2)
		w.people.represent(w.represents(mel, bob, time.Minute))
		a := w.ask(red, w.question(red))
		w.approve(red, a, order[0])
		_, err := w.vote(red, a, order[1], approval.Approve)
		if fault.Of(err).Code != "deputy_voted" {
			t.Errorf("%v: got %v", order, err)
		}
		list, err := w.approvals.List(t.Context(), red, approval.Filter{Status: approval.Pending, Voter: order[1]}, "", 10)
		if err != nil || len(list.Approvals) != 0 {
			t.Errorf("%v: got %d that wait, %v", order, len(list.Approvals), err)
		}
		w.approve(red, a, ann)
		if err := consumeErr(w, red, a); err != nil {
			t.Errorf("%v: %v", order, err)
		}
	}
}

// voteModel decides naively who may vote.
type voteModel struct {
	w     *world
	asker account.ID
	given []modelVote
}

type modelVote struct {
	who, represented account.ID
}

// represented returns whom a user represents now: nobody if the user's own role votes.
func (m *voteModel) represented(who account.ID) account.ID {
	for _, d := range m.w.people.deputies {
		now := id.InstantOf(m.w.Clock())
		if d.Deputy == who && d.From <= now && now < d.Until && m.votes(d.Person) && !m.votes(who) {
			return d.Person
		}
	}
	return ""
}

func (m *voteModel) votes(who account.ID) bool {
	switch m.w.people.roles[who] {
	case account.Owner, account.Admin, account.Approver:
		return true
	}
	return false
}

func (m *voteModel) may(who account.ID) bool {
	represented := m.represented(who)
	if _, is := m.w.people.roles[who]; !is || !m.votes(who) && represented == "" || who == m.asker || represented == m.asker {
		return false
	}
	for _, v := range m.given {
		if v.who == who {
			return false
		}
		sides := [][2]account.ID{{who, v.represented}, {represented, v.who}, {represented, v.represented}}
		if !m.counts(v) {
			sides = nil
		}
		for _, s := range sides {
			if s[0] != "" && s[0] == s[1] {
				return false
			}
		}
	}
	return true
}

func (m *voteModel) counts(v modelVote) bool {
	_, is := m.w.people.roles[v.who]
	return is && (m.votes(v.who) || v.represented != "" && m.votes(v.represented))
}

// counted returns how many votes count: of those of a member and the deputy, the first.
func (m *voteModel) counted() (n int) {
	seen := map[account.ID]bool{"": false}
	for _, v := range m.given {
		if m.counts(v) && !seen[v.who] && !seen[v.represented] {
			n++
			seen[v.who], seen[v.represented] = true, v.represented != ""
		}
	}
	return n
}

// Users vote on approvals with deputies, roles and times by chance. Who may vote, and when an approval may be used, is what a naive
// model says. No two votes are of one user, or of a member and the deputy.
func TestDeputiesByChance(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 39))
	roles := []account.Role{account.Owner, account.Admin, account.Approver, account.Auditor, account.Member}
	everybody := []account.ID{ann, bob, eve, mel, "acc_max"}
	accepted, refused, used, lost := 0, 0, 0, 0
	w := newWorld(t)
	for round := range 60 {
		for _, who := range everybody {
			w.people.set(who, roles[random.IntN(len(roles))])
		}
		order, from := random.Perm(len(everybody)), id.InstantOf(w.Clock())
		var all []member.Deputyship
		for i, at := range order[:random.IntN(len(order)+1)] { // nobody represents two, and nobody is represented twice
			begin := from + id.Instant(random.IntN(4))*1000
			all = append(all, member.Deputyship{Person: everybody[at], Deputy: everybody[order[(i+1)%len(order)]], From: begin,
				Until: begin + id.Instant(1+random.IntN(6))*1000})
		}
		w.people.represent(all...)
		m := &voteModel{w: w, asker: everybody[random.IntN(len(everybody))]}
		q := w.question(red)
		q.Trace, q.Principal = id.Trace(fmt.Sprint("trc_", round)), string(m.asker)
		w.activate(red, fmt.Sprint("round-", round), 2)
		a := w.ask(red, q)
		for range 10 {
			w.Pass(time.Duration(random.IntN(3)) * time.Second)
			if random.IntN(4) == 0 {
				w.people.set(everybody[random.IntN(len(everybody))], roles[random.IntN(len(roles))])
			}
			who := everybody[random.IntN(len(everybody))]
			open := w.status(red, a) == approval.Pending
			want := open && m.may(who)
			if found, err := w.approvals.Find(t.Context(), red, a.ID); err != nil {
				t.Fatal(err)
			} else if obstacles, err := w.approvals.Obstacles(t.Context(), red, who, []approval.Approval{found}); err != nil || (obstacles[0] == "") != want {
				t.Fatalf("round %d: %s: got obstacle %q, %v, want may %v", round, who, obstacles[0], err, want)
			}
			represented := m.represented(who)
			_, err := w.vote(red, a, who, approval.Approve)
			if (err == nil) != want {
				t.Fatalf("round %d: %s: got %v, want may %v", round, who, err, want)
			}
			if err != nil {
				refused++
				continue
			}
			accepted++
			m.given = append(m.given, modelVote{who, represented})
		}
		if w.status(red, a) == approval.Approved {
			enough := m.counted() >= 2
			if err := consumeErr(w, red, a); (err == nil) != enough {
				t.Fatalf("round %d: got %v with %d votes of %v", round, err, m.counted(), m.given)
			} else if enough {
				used++
			} else {
				lost++
			}
		}
	}
	t.Logf("%d votes, %d refused, %d approvals used, %d lost their quorum", accepted, refused, used, lost)
	if slices.Min([]int{accepted, refused, used, lost}) == 0 {
		t.Error("something never happened")
	}
}

// A deputyship has no effect while the deputy's own role votes: nobody silences a reviewer by naming the reviewer deputy.
func TestReviewerIsNoDeputy(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "two", 2)
	w.people.represent(w.represents(eve, bob, time.Minute))
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	found, err := w.vote(red, a, eve, approval.Deny)
	if err != nil || found.Status != approval.Denied || found.Votes[1].DeputyFor != "" {
		t.Errorf("the reviewer's veto: got %+v, %v", found, err)
	}

	q := w.question(red)
	q.Trace, q.Principal = "trc_2", string(bob)
	asked := w.ask(red, q)
	w.approve(red, asked, eve) // bob's own request does not bind her
	w.people.set(eve, account.Auditor)
	_, err = w.vote(red, w.askAgain(red, "trc_3"), eve, approval.Approve)
	if err != nil {
		t.Errorf("without a role of her own: %v", err)
	}
}

func (w *world) askAgain(tenant id.Tenant, trace id.Trace) approval.Approval {
	w.t.Helper()
	q := w.question(tenant)
	q.Trace = trace
	return w.ask(tenant, q)
}

// A vote names the member that the check of the right found, even if the deputyship ends in the meantime.
func TestVoteKnowsOneAnswer(t *testing.T) {
	w := newWorld(t)
	w.people.represent(w.represents(mel, bob, time.Minute))
	a := w.ask(red, w.question(red))
	w.people.readOnce = true
	found, err := w.vote(red, a, mel, approval.Approve)
	if err != nil || len(found.Votes) != 1 || found.Votes[0].DeputyFor != bob {
		t.Errorf("got %+v, %v", found.Votes, err)
	}
	if said := w.Audit(t, red); !strings.Contains(said[len(said)-1].Payload, `"deputy_for":"acc_bob"`) {
		t.Errorf("ledger: got %s", said[len(said)-1].Payload)
	}
}

// Addresses of the represented member count as those of the deputy do.
func TestDeputyOfAnUnprovedAddress(t *testing.T) {
	for _, proved := range []bool{false, true} {
		newWorld := func() *world {
			w := newWorld(t)
			w.activate(red, "two", 2)
			w.people.proved = proved
			w.people.represent(w.represents(mel, bob, time.Minute))
			return w
		}
		shared := string(bob) + "@example.com"

		w := newWorld()
		w.people.moves(eve, shared)
		for _, order := range [][]account.ID{{eve, mel}, {mel, eve}} {
			a := w.askAgain(red, id.Trace("trc_"+string(order[0])))
			w.approve(red, a, order[0])
			_, err := w.vote(red, a, order[1], approval.Approve)
			if (err == nil) != proved || !proved && fault.Of(err).Code != "address_unproved" {
				t.Errorf("proved %v, %v: got %v", proved, order, err)
			}
		}

		for _, order := range [][]account.ID{{eve, mel}, {mel, eve}} {
			w = newWorld()
			a := w.ask(red, w.question(red))
			w.approve(red, a, order[0])
			w.approve(red, a, order[1])
			w.people.moves(eve, shared)
			if err := consumeErr(w, red, a); (err == nil) != proved {
				t.Errorf("proved %v, one address after the votes of %v: got %v", proved, order, err)
			}
		}

		w = newWorld()
		w.people.moves(bob, string(eve)+"@example.com")
		q := w.question(red)
		q.Principal = string(eve)
		w.register(red, eve)
		asked := w.ask(red, q)
		if _, err := w.vote(red, asked, mel, approval.Approve); (err == nil) != proved {
			t.Errorf("proved %v, the member shares the address of who asked: got %v", proved, err)
		}
	}
}

// A vote that does not count uses up nobody's vote. If it counts again, the first of the two does.
func TestVoteOfAFormerDeputy(t *testing.T) {
	w := newWorld(t)
	w.activate(red, "three", 3)
	w.people.represent(w.represents(mel, bob, time.Minute))
	a := w.ask(red, w.question(red))
	w.approve(red, a, mel)
	if _, err := w.vote(red, a, bob, approval.Approve); fault.Of(err).Code != "deputy_voted" {
		t.Errorf("got %v", err)
	}
	w.people.remove(mel)
	w.approve(red, a, bob)
	w.people.set(mel, account.Member)
	w.approve(red, a, eve)
	if got := w.status(red, a); got != approval.Pending {
		t.Errorf("after the votes of mel for bob, bob and eve: got %s", got)
	}
	w.approve(red, a, ann)
	if err := consumeErr(w, red, a); err != nil {
		t.Error(err)
	}
}

// Whoever votes is decided with one reading of the deputies, for any number of users.
func TestDeputiesAreReadOnce(t *testing.T) {
	w := newWorld(t)
	w.people.represent(w.represents(mel, bob, time.Minute))
	a := w.ask(red, w.question(red))
	users := []account.ID{ann, bob, eve, mel, "acc_stranger"}
	w.people.asked = 0
	got, err := w.approvals.Voters(t.Context(), red, a.ID, slices.Values(users), 10)
	if want := users[:4]; err != nil || !slices.Equal(got, want) || w.people.asked != 1 {
		t.Errorf("got %v, %v with %d readings, want %v", got, err, w.people.asked, want)
	}
	w.people.asked = 0
	if w.approve(red, a, mel); w.people.asked != 1 {
		t.Errorf("a vote: %d readings", w.people.asked)
	}
}

// The log names the member in whose place a deputy revokes an approval, and nobody for all others.
func TestDeputyRevokes(t *testing.T) {
	w := newWorld(t)
	w.people.represent(w.represents(mel, bob, time.Minute))
	for who, want := range map[account.ID]bool{mel: true, bob: false, eve: false} {
		a := w.askAgain(red, id.Trace("trc_"+string(who)))
		if err := w.approvals.Revoke(t.Context(), red, who, a.ID, approval.Remark{}); err != nil {
			t.Fatal(err)
		}
		said := w.Audit(t, red)
		if got := said[len(said)-1].Payload; strings.Contains(got, `"deputy_for":"acc_bob"`) != want || !strings.Contains(got, `"transition":"revoked"`) {
			t.Errorf("%s: got %s", who, got)
		}
	}
}
