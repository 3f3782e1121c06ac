package policystore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/tenant/quota"
)

// plan is the limits of organizations.
type plan map[id.Tenant]quota.Limits

func (p plan) Limits(_ context.Context, t id.Tenant) (quota.Limits, error) { return p[t], nil }

// bounded gives the world's policies limits.
func (w *world) bounded(p plan) {
	w.book = policystore.New(policystore.Options{
		Records: w.store, Events: w.SystemEvents, Clock: w.Clock, Quota: &quota.Quota{Records: w.store, Clock: w.Clock, Plan: p.Limits},
	})
}

func (w *world) tryCreate(tenant id.Tenant, policyID string) error {
	_, err := w.book.Create(w.t.Context(), tenant, ann, document(policyID, "acme.pay"))
	return err
}

func TestPoliciesOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.create(red, "from-before", "acme.pay") // without a limit
	w.bounded(plan{red: {Policies: 3}})
	const full = "The organization has 3 policies, as many as its plan allows"
	var made, refusals atomic.Int64
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			err := w.tryCreate(red, fmt.Sprint("p", i))
			switch {
			case err == nil:
				made.Add(1)
			case fault.Of(err).Message == full && fault.Of(err).Code == "plan_limit":
				refusals.Add(1)
			default:
				t.Error(err)
			}
			if err := w.tryCreate(blue, fmt.Sprint("p", i)); err != nil {
				t.Errorf("the other organization: %v", err)
			}
		})
	}
	group.Wait()
	if made.Load() != 2 || refusals.Load() != 4 {
		t.Errorf("got %d made and %d refused, want 2 and 4", made.Load(), refusals.Load())
	}
	w.draft(red, "from-before", `{"name":"changed"}`)
	w.bounded(plan{red: {Policies: 3}}) // as after a restart
	refused(t, "after a restart", w.tryCreate(red, "more"), fault.Conflict, full)
	if err := w.book.Delete(t.Context(), red, "from-before"); err != nil {
		t.Fatal(err)
	}
	if err := w.tryCreate(red, "in-its-place"); err != nil {
		t.Errorf("after one was deleted: %v", err)
	}
	for tenant, want := range map[id.Tenant]uint64{red: 3, blue: 6} {
		if n, err := w.book.Count(t.Context(), tenant); err != nil || n != want {
			t.Errorf("policies of %d: got %d, %v; want %d", tenant, n, err, want)
		}
	}
}

// A policy has as many versions as the plan allows. Existing versions stay.
func TestVersionsOfAPolicy(t *testing.T) {
	w := newWorld(t)
	w.bounded(plan{red: {PolicyVersions: 2}})
	for i := range 2 {
		if err := w.tryCreate(red, "p"); err != nil && !fault.Is(err, fault.Conflict) {
			t.Fatal(err)
		}
		w.draft(red, "p", fmt.Sprintf(`{"name":"again %d"}`, i))
		w.activate(red, "p")
	}
	_, err := w.book.Draft(t.Context(), red, ann, "p", []byte(`{"name":"third"}`))
	refused(t, "third version", err, fault.Conflict, "The policy has 2 versions, as many as the plan allows: create another policy")
	w.mustDecide(red, "acme.pay", "p/2/r deny")
	if err := w.tryCreate(red, "q"); err != nil {
		t.Errorf("another policy: %v", err)
	}
	w.create(blue, "p", "acme.pay")
	for i := range 4 {
		w.activate(blue, "p")
		w.draft(blue, "p", fmt.Sprintf(`{"name":"n%d"}`, i))
	}
}

func TestPaceOfPolicies(t *testing.T) {
	w := newWorld(t)
	w.bounded(plan{red: {StatementsPerMinute: 2}, blue: {StatementsPerMinute: 2}})
	const slower = "Too many changes: at most 2 in a minute"
	w.create(red, "p", "acme.pay")
	w.draft(red, "p", `{"name":"again"}`)
	refused(t, "create", w.tryCreate(red, "q"), fault.RateLimited, slower)
	_, err := w.book.Draft(t.Context(), red, ann, "p", []byte(`{"name":"n"}`))
	refused(t, "draft", err, fault.RateLimited, slower)
	_, err = w.book.Activate(t.Context(), red, ann, "p")
	refused(t, "activate", err, fault.RateLimited, slower)
	w.create(blue, "p", "acme.pay")
	w.activate(blue, "p")
	if err := w.book.Delete(t.Context(), red, "p"); err != nil {
		t.Errorf("delete: %v", err)
	}
}
