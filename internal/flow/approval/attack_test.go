package approval_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

func TestConsumeRefuses(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	good := w.claim(red, a)
	stranger := edkey.NewPrivate().Sign(approval.ConsumeMessage(a.ID, a.ActionDigest))
	changed := a
	changed.ActionDigest[31] ^= 1
	ofAnother := w.claim(red, approval.Approval{ID: "apr_other", ActionDigest: a.ActionDigest, IngestKeyID: a.IngestKeyID})
	for name, tt := range map[string]struct {
		tenant id.Tenant
		claim  approval.Claim
		want   fault.Kind
	}{
		"changed parameters":           {red, w.claim(red, changed), fault.Conflict},
		"changed parameters, no proof": {red, approval.Claim{IngestKeyID: a.IngestKeyID, Action: changed.ActionDigest, Proof: good.Proof}, fault.Invalid},
		"a stranger's proof":           {red, approval.Claim{IngestKeyID: a.IngestKeyID, Action: a.ActionDigest, Proof: stranger[:]}, fault.Invalid},
		"no proof":                     {red, approval.Claim{IngestKeyID: a.IngestKeyID, Action: a.ActionDigest}, fault.Invalid},
		"the proof of another":         {red, approval.Claim{IngestKeyID: a.IngestKeyID, Action: a.ActionDigest, Proof: ofAnother.Proof}, fault.Invalid},
		"another ingest key":           {red, approval.Claim{IngestKeyID: "ik_ann", Action: a.ActionDigest, Proof: good.Proof}, fault.NotFound},
		"the other organization":       {blue, good, fault.NotFound},
	} {
		_, err := w.approvals.Consume(t.Context(), tt.tenant, a.ID, tt.claim)
		wantKind(t, name, err, tt.want)
	}
	if got := w.status(red, a); got != approval.Approved {
		t.Fatalf("got %s, want approved", got)
	}
	if _, err := w.approvals.Consume(t.Context(), red, a.ID, good); err != nil {
		t.Error(err)
	}
}

func TestConsumeTakesAnActiveKey(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	w.approve(red, a, bob)
	credentials := w.keys[red]
	if _, err := w.agents.RevokeKey(t.Context(), red, "acc_ann", credentials.Agent, credentials.Key, agent.Revocation{}); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "a revoked key's proof", consumeErr(w, red, a), fault.Invalid)
}

// However the append of a step ends, all reads agree on the result.
func TestStepsWhoseAppendFails(t *testing.T) {
	for name, failure := range map[string]storagetest.Failure{
		"refused": storagetest.Refused, "request lost": storagetest.RequestLost, "answer lost": storagetest.AnswerLost,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.ask(red, w.question(red))
			once(w, failure)
			_, err := w.vote(red, a, bob, approval.Approve)
			w.Store.Fail(nil)
			if stated := len(w.transitions(red, a)) == 2; stated != (w.status(red, a) == approval.Approved) {
				t.Fatalf("status %s, ledger %q", w.status(red, a), w.transitions(red, a))
			} else if !stated {
				w.approve(red, a, bob)
			} else if err != nil {
				t.Errorf("it is done, and the caller was told %v", err)
			}
			once(w, failure)
			note, err := w.approvals.Consume(t.Context(), red, a.ID, w.claim(red, a))
			w.Store.Fail(nil)
			again, err2 := w.approvals.Consume(t.Context(), red, a.ID, w.claim(red, a))
			if err2 != nil || err == nil && again != note {
				t.Errorf("consumed: %q, %v; again: %q, %v", note, err, again, err2)
			}
			if got := w.transitions(red, a); len(got) != 3 {
				t.Errorf("ledger: got %q, want three", got)
			}
		})
	}
}

// once makes the next append of red fail.
func once(w *world, failure storagetest.Failure) {
	var first sync.Once
	w.Store.Fail(func(b storage.Batch) storagetest.Failure {
		f := storagetest.NoFailure
		if b.Tenant == red {
			first.Do(func() { f = failure })
		}
		return f
	})
}

func TestWait(t *testing.T) {
	w := newWorld(t)
	a := w.ask(red, w.question(red))
	_, err := w.approvals.Get(t.Context(), red, "ik_ann", a.ID, 0)
	wantKind(t, "another ingest key", err, fault.NotFound)
	got := make(chan approval.Approval, 100)
	for range cap(got) {
		go func() {
			found, err := w.approvals.Get(context.WithoutCancel(t.Context()), red, a.IngestKeyID, a.ID, time.Minute)
			if err != nil {
				t.Error(err)
			}
			got <- found
		}()
	}
	w.approve(red, a, bob)
	for range cap(got) {
		if found := <-got; found.Status != approval.Approved {
			t.Errorf("got %s", found.Status)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := w.question(red)
	q.Trace = "trc_2"
	b := w.ask(red, q)
	if found, err := w.approvals.Get(ctx, red, b.IngestKeyID, b.ID, time.Minute); err != nil && !errors.Is(err, context.Canceled) || err == nil && found.Status != approval.Pending {
		t.Errorf("a client that went: got %s, %v", found.Status, err)
	}
	if found, err := w.approvals.Get(t.Context(), red, b.IngestKeyID, b.ID, time.Millisecond); err != nil || found.Status != approval.Pending {
		t.Errorf("after the wait: got %s, %v", found.Status, err)
	}
	go w.approvals.Release()
	if found, err := w.approvals.Get(t.Context(), red, b.IngestKeyID, b.ID, time.Hour); err != nil || found.Status != approval.Pending {
		t.Errorf("when all are released: got %s, %v", found.Status, err)
	}
}
