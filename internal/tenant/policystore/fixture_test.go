package policystore_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
	ann  = "acc_ann"
)

// world has two organizations without policies.
type world struct {
	*ledgertest.Service
	t     testing.TB
	store *spyStore
	book  *policystore.Policies
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s := ledgertest.New(t)
	w := &world{Service: s, t: t, store: &spyStore{RecordStore: s.Store}}
	w.book = policystore.New(policystore.Options{Records: w.store, Events: s.SystemEvents, Clock: s.Clock})
	s.Found(t, red)
	s.Found(t, blue)
	return w
}

// document returns a policy that denies one tool.
func document(policyID, tool string) []byte {
	return fmt.Appendf(nil, `{"policy_id":"%s","name":"About %s","rules":[{"rule_id":"r","tool":"%s","decision":"deny"}]}`, policyID, tool, tool)
}

func (w *world) create(tenant id.Tenant, policyID, tool string) policystore.Version {
	w.t.Helper()
	v, err := w.book.Create(w.t.Context(), tenant, ann, document(policyID, tool))
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) draft(tenant id.Tenant, policyID, patch string) policystore.Version {
	w.t.Helper()
	v, err := w.book.Draft(w.t.Context(), tenant, ann, policyID, []byte(patch))
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) activate(tenant id.Tenant, policyID string) policystore.Version {
	w.t.Helper()
	v, err := w.book.Activate(w.t.Context(), tenant, ann, policyID)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

func (w *world) get(tenant id.Tenant, policyID string, version uint64) policystore.Version {
	w.t.Helper()
	v, err := w.book.Get(w.t.Context(), tenant, policyID, version)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// decides returns the active policy's decision on a tool, as "policy/version/rule decision".
func (w *world) decides(tenant id.Tenant, tool id.Tool) string {
	w.t.Helper()
	compiled, err := w.book.Active(w.t.Context(), w.State(w.t, tenant))
	if err != nil {
		w.t.Fatal(err)
	}
	evaluation := policy.NoPolicy()
	if compiled != nil {
		evaluation = compiled.Evaluate(policy.Input{Tool: tool, Agent: "agt_1"})
	}
	outcome := evaluation.Settle(nil)
	return fmt.Sprintf("%s/%d/%s %s", outcome.PolicyID, outcome.PolicyVersion, outcome.RuleID, outcome.Decision)
}

func (w *world) mustDecide(tenant id.Tenant, tool id.Tool, want string) {
	w.t.Helper()
	if got := w.decides(tenant, tool); got != want {
		w.t.Errorf("tenant %d, %s: got %s, want %s", tenant, tool, got, want)
	}
}

// refused checks the kind and the message of an error.
func refused(t testing.TB, what string, err error, kind fault.Kind, message string) {
	t.Helper()
	if got := fault.Of(err); err == nil || got.Kind != kind || got.Message != message {
		t.Errorf("%s: got %v, want kind %d, %q", what, err, kind, message)
	}
}

// spyStore counts reads, can fail reads for a while, and lets a test act between a read and what follows it.
type spyStore struct {
	storage.RecordStore
	blind   atomic.Bool
	reads   atomic.Int64
	between func(kind storage.Kind) // after each Get; not concurrently
}

var errBlind = errors.New("can't see")

func (s *spyStore) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	s.reads.Add(1)
	if s.blind.Load() {
		return storage.Record{}, errBlind
	}
	r, err := s.RecordStore.Get(ctx, t, kind, key)
	if s.between != nil {
		s.between(kind)
	}
	return r, err
}

func (s *spyStore) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if s.blind.Load() {
		return nil, errBlind
	}
	return s.RecordStore.Scan(ctx, t, kind, begin, end, limit)
}

func (s *spyStore) Write(ctx context.Context, t id.Tenant, changes []storage.Change) error {
	if s.blind.Load() {
		return errBlind
	}
	return s.RecordStore.Write(ctx, t, changes)
}
