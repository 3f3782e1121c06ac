package approval_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/account"
)

// Obstacles returns exactly the obstacle that a vote encounters.
func TestObstacles(t *testing.T) {
	vote := func(who account.ID, vote string) func(*world, approval.Approval) {
		return func(w *world, a approval.Approval) {
			if _, err := w.vote(red, a, who, vote); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	nothing := func(*world, approval.Approval) {}
	for name, tt := range map[string]struct {
		before func(w *world)
		ask    func(q *approval.Question)
		do     func(w *world, a approval.Approval)
		want   map[account.ID]approval.Obstacle // all others: ""
	}{
		"pending":       {nil, nil, nothing, map[account.ID]approval.Obstacle{"acc_member": "role", "acc_stranger": "role"}},
		"one has voted": {nil, nil, vote(bob, approval.Approve), map[account.ID]approval.Obstacle{bob: "already_voted", "acc_member": "role", "acc_stranger": "role"}},
		"the key's maker": {nil, func(q *approval.Question) { q.IngestKeyID = "ik_ann" }, nothing,
			map[account.ID]approval.Obstacle{ann: "own_request", "acc_member": "role", "acc_stranger": "role"}},
		"the principal": {nil, func(q *approval.Question) { q.Principal = "Mail <ACC_EVE@example.com>" }, nothing,
			map[account.ID]approval.Obstacle{eve: "own_request", "acc_member": "role", "acc_stranger": "role"}},
		"the principal under another address": {nil, func(q *approval.Question) { q.Principal = "mailto:eve@old.example" },
			func(w *world, _ approval.Approval) { w.people.moves(eve, "eve@old.example") },
			map[account.ID]approval.Obstacle{eve: "own_request", "acc_member": "role", "acc_stranger": "role"}},
		"self-review": {func(w *world) { w.people.allow(true) }, func(q *approval.Question) { q.IngestKeyID = "ik_ann" }, nothing,
			map[account.ID]approval.Obstacle{"acc_member": "role", "acc_stranger": "role"}},
		"a lost role": {nil, nil, func(w *world, _ approval.Approval) { w.people.remove(bob) },
			map[account.ID]approval.Obstacle{bob: "role", "acc_member": "role", "acc_stranger": "role"}},
		"denied":  {nil, nil, vote(bob, approval.Deny), everybody("decided")},
		"expired": {nil, nil, func(w *world, _ approval.Approval) { w.Pass(601 * time.Second) }, everybody("expired")},
		"revoked": {nil, nil, func(w *world, a approval.Approval) {
			if err := w.approvals.Revoke(w.t.Context(), red, "acc_eve", a.ID, approval.Remark{}); err != nil {
				w.t.Fatal(err)
			}
		}, everybody("revoked")},
		"cancelled": {nil, nil, func(w *world, a approval.Approval) {
			if err := w.approvals.Cancel(w.t.Context(), red, a.IngestKeyID, a.ID); err != nil {
				w.t.Fatal(err)
			}
		}, everybody("cancelled")},
		"invalidated": {nil, nil, func(w *world, _ approval.Approval) { w.install(red, "open") }, everybody("invalidated")},
	} {
		for who := range everybody("") {
			t.Run(name+"/"+string(who), func(t *testing.T) {
				w := newWorld(t)
				w.activate(red, "three", 3)
				if tt.before != nil {
					tt.before(w)
				}
				q := w.question(red)
				if tt.ask != nil {
					tt.ask(&q)
				}
				a := w.ask(red, q)
				tt.do(w, a)
				now, err := w.approvals.Find(t.Context(), red, a.ID)
				if err != nil {
					t.Fatal(err)
				}
				got, err := w.approvals.Obstacles(t.Context(), red, who, []approval.Approval{now, now})
				if err != nil || fmt.Sprint(got) != fmt.Sprint([]approval.Obstacle{tt.want[who], tt.want[who]}) {
					t.Fatalf("got %q, %v, want %q", got, err, tt.want[who])
				}
				if _, err := w.vote(red, a, who, approval.Deny); (err == nil) != (tt.want[who] == "") {
					t.Errorf("obstacle %q, and the vote: %v", tt.want[who], err)
				}
			})
		}
	}
}

func everybody(o approval.Obstacle) map[account.ID]approval.Obstacle {
	return map[account.ID]approval.Obstacle{ann: o, bob: o, eve: o, "acc_member": o, "acc_stranger": o}
}
