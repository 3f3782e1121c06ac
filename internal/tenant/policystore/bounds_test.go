package policystore_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

// beyond is a version of a policy that exceeds what can be saved now.
func beyond(t *testing.T, policyID string) policy.Policy {
	t.Helper()
	var rules []string
	for i := range 30 {
		rules = append(rules, fmt.Sprintf(`{"rule_id":"r%d","tool":"acme.pay","decision":"deny","when":"%d in [%s1]"}`, i, i+1, strings.Repeat("0,", 1000)))
	}
	p, err := policy.ParseStored(fmt.Appendf(nil, `{"policy_id":"%s","version":1,"name":"n","rules":[%s]}`, policyID, strings.Join(rules, ",")))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rewrite changes a record to what an older server would have left.
func (w *world) rewrite(tenant id.Tenant, kind storage.Kind, key string, change map[string]any) {
	w.t.Helper()
	r, err := w.Store.Get(w.t.Context(), tenant, kind, key)
	if err != nil {
		w.t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(r.Value, &members); err != nil {
		w.t.Fatal(err)
	}
	for name, value := range change {
		members[name] = value
	}
	if r.Value, err = json.Marshal(members); err != nil {
		w.t.Fatal(err)
	}
	err = w.Store.Write(w.t.Context(), tenant, []storage.Change{{Kind: kind, Key: key, Value: r.Value, If: storage.AnyVersion}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// A draft that was saved before there were limits is not activated. The active policy stays, also in the other
// organization.
func TestPoliciesOfBefore(t *testing.T) {
	w := newWorld(t)
	old := beyond(t, "p")
	document := json.RawMessage(old.Document())
	for _, tenant := range []id.Tenant{red, blue} {
		w.create(tenant, "p", "acme.pay")
	}
	w.rewrite(red, "policy_version", "p/00000000000001", map[string]any{"document": document})
	_, err := w.book.Activate(t.Context(), red, ann, "p")
	if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Of(err).Message, "rules[9].when has 2067 parts") {
		t.Errorf("a draft of before: got %v", err)
	}
	w.activate(blue, "p")
	w.rewrite(blue, "policy_version", "p/00000000000001", map[string]any{"document": document})
	w.rewrite(blue, "policy_active", "", map[string]any{"digest": old.Digest().String()})
	w.mustDecide(red, "acme.pay", "none/0/none allow")
	w.mustDecide(blue, "acme.pay", "p/1/r0 deny")
	_, err = w.book.Draft(t.Context(), blue, ann, "p", []byte(`{"name":"other"}`))
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("a draft on it: got %v", err)
	}
}

// Saving the largest possible policy allocates a bounded number of bytes.
func TestSavingLargest(t *testing.T) {
	w := newWorld(t)
	document := largest()
	if len(document) < policy.MaxBytes*9/10 {
		t.Fatalf("%d bytes are not the largest policy", len(document))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := w.book.Create(t.Context(), red, ann, document)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d bytes: %d KiB allocated", len(document), allocated>>10)
	if allocated > 150<<20 {
		t.Errorf("%d KiB are allocated", allocated>>10)
	}
	compiled := w.activate(red, "p")
	w.mustDecide(blue, "acme.pay", "none/0/none allow")
	if compiled.State != "active" {
		t.Errorf("got %+v", compiled)
	}
}

// largest returns a policy with as many conditions and patterns as allowed, and agents, paths and tool names for the
// rest of its bytes.
func largest() []byte {
	var rules []string
	add := func(i int, when, more string) {
		rules = append(rules, fmt.Sprintf(`{"rule_id":"r%d","tool":"a%d%s","decision":"deny","when":"%s"%s}`, i, i, strings.Repeat(".b", 60), when, more))
	}
	sum := strings.Repeat("1+", 14) + "1"
	for i := range 9 {
		add(i, strings.Repeat(fmt.Sprintf("%s==%d||", sum, i), 55)+"true", "")
	}
	for i := 9; i < 26; i++ {
		add(i, fmt.Sprintf("tool_name.matches('^(?:%d%s)$')", i, alternatives(130)), "")
	}
	for i := 26; i < 400; i++ {
		add(i, "true", fmt.Sprintf(`,"agents":[%s"a"],"requires":["a%s"]`, strings.Repeat(`"agt_12345678",`, 140), strings.Repeat(".b", 60)))
	}
	return fmt.Appendf(nil, `{"policy_id":"p","name":"n","rules":[%s]}`, strings.Join(rules, ","))
}

// alternatives returns a part of a pattern with n choices.
func alternatives(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "|%c%c", rune(0x4e00+i*7), rune(0x5e00+i))
	}
	return b.String()
}
