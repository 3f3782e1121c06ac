package policystore_test

import (
	"context"
	"sync"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/policy"
)

const spending = `{"policy_id":"spending","name":"Spending","rules":[
	{"rule_id":"cap","tool":"acme.pay.*","decision":"deny","when":"payload.amount > 100"}],"tests":[
	{"name":"small","input":{"tool_name":"acme.pay.refund","payload":{"amount":100}},"expect":{"decision":"allow"}},
	{"name":"large","input":{"tool_name":"acme.pay.refund","payload":{"amount":100.01}},"expect":{"decision":"deny","rule_id":"cap"}},
	{"name":"nothing","input":{"tool_name":"acme.pay.refund"},"expect":{"decision":"deny"}}]}`

// A policy becomes active only if its own tests pass, and the tests are stored.
func TestTestsHaveToPass(t *testing.T) {
	w := newWorld(t)
	if _, err := w.book.Create(t.Context(), red, ann, []byte(spending)); err != nil {
		t.Fatal(err)
	}
	w.draft(red, "spending", `{"rules":[{"rule_id":"cap","tool":"acme.pay.*","decision":"deny","when":"payload.amount > 1000"}]}`)
	_, err := w.book.Activate(t.Context(), red, ann, "spending")
	refused(t, "a test fails", err, fault.Conflict, `1 of 3 tests of the policy do not pass; tests[1] "large": got allow by default, want deny. No rule matches; the policy's default is allow.`)
	if code := fault.Of(err).Code; code != "tests_failed" {
		t.Errorf("got code %q", code)
	}
	w.mustDecide(red, "acme.pay.refund", "none/0/none allow")
	if size := w.State(t, red).Size(); size != 0 {
		t.Errorf("a refused activation left %d events", size)
	}

	w.draft(red, "spending", `{"rules":[{"rule_id":"cap","tool":"acme.pay.*","decision":"deny","when":"payload.amount > 100"}]}`)
	v := w.activate(red, "spending")
	w.mustDecide(red, "acme.pay.refund", "spending/1/cap deny") // no amount
	stored, err := policy.ParseStored(v.Document)
	if err != nil || len(stored.Tests) != 3 || stored.Digest() != v.Digest {
		t.Errorf("got %d tests, digest %s, %v", len(stored.Tests), stored.Digest(), err)
	}
	if again, err := policy.Parse(v.Document); err != nil || string(again.Document()) != string(v.Document) {
		t.Errorf("the stored document is read as %s, %v", again.Document(), err)
	}
	w.mustDecide(blue, "acme.pay.refund", "none/0/none allow")
}

// The active policy is compiled once, even if the configuration around it changes and many callers ask for it at a
// time.
func TestCompiledOnce(t *testing.T) {
	w := newWorld(t)
	if _, err := w.book.Create(t.Context(), red, ann, []byte(spending)); err != nil {
		t.Fatal(err)
	}
	w.activate(red, "spending")
	compiled := w.active(t.Context(), red)
	_, err := w.SystemEvents.Append(t.Context(), red, ann, func(context.Context, *log.State) (sysevent.Change, error) {
		return sysevent.Change{Statements: []sysevent.Statement{{Kind: sysevent.SettingsChanged, Payload: map[string]any{"names": []string{}}}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			if got := w.active(t.Context(), red); got != compiled {
				t.Error("compiled again")
			}
		})
	}
	group.Wait()
	w.draft(red, "spending", `{"name":"Other"}`)
	w.activate(red, "spending")
	if got := w.active(t.Context(), red); got == compiled || got.Digest() == compiled.Digest() {
		t.Error("the old policy is still active")
	}
}

func (w *world) active(ctx context.Context, tenant id.Tenant) *policy.Compiled {
	w.t.Helper()
	compiled, err := w.book.Active(ctx, w.State(w.t, tenant))
	if err != nil || compiled == nil {
		w.t.Fatalf("got %v, %v", compiled, err)
	}
	return compiled
}
