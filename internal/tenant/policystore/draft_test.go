package policystore_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/policy"
	"github.com/agentledger/agentledger/storage"
)

func TestCreateIsADraft(t *testing.T) {
	w := newWorld(t)
	got := w.create(red, "payments", "acme.pay")
	parsed, err := policy.Parse(got.Document)
	if err != nil {
		t.Fatal(err)
	}
	want := policystore.Version{
		PolicyID: "payments", Version: 1, State: policystore.Draft, Digest: parsed.Digest(), Document: parsed.Document(),
		WrittenAt: id.InstantOf(w.Clock()), WrittenBy: ann,
	}
	same(t, "created", got, want)
	same(t, "stored", w.get(red, "payments", 0), want)
	if parsed.ID != "payments" || parsed.Version != 1 {
		t.Errorf("the document is of %s version %d", parsed.ID, parsed.Version)
	}
	w.mustDecide(red, "acme.pay", "none/0/none allow")
	if size := w.State(t, red).Size(); size != 0 {
		t.Errorf("a draft left %d events", size)
	}
	if v := w.create(red, "", "acme.pay"); !strings.HasPrefix(v.PolicyID, "pol_") {
		t.Errorf("got policy id %s", v.PolicyID)
	}
}

func same(t *testing.T, what string, got, want policystore.Version) {
	t.Helper()
	if !bytes.Equal(got.Document, want.Document) {
		t.Errorf("%s: got document %s, want %s", what, got.Document, want.Document)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func TestCreateRefuses(t *testing.T) {
	w := newWorld(t)
	w.create(red, "taken", "acme.pay")
	w.create(blue, "blue-only", "acme.pay")
	long := nearlyTooLong()
	for name, tc := range map[string]struct {
		document string
		kind     fault.Kind
		message  string
	}{
		"taken":               {string(document("taken", "x")), fault.Conflict, "policy_id is taken"},
		"reserved":            {string(document("none", "x")), fault.Invalid, "policy_id must be 1 to 128 of A-Z a-z 0-9 . _ : - and not a reserved word"},
		"version":             {`{"name":"n","version":1}`, fault.Invalid, "version is assigned by the service: omit it"},
		"no name":             {`{"rules":[]}`, fault.Invalid, "name must have 1 to 256 characters, none of them a control character"},
		"unknown member":      {`{"name":"n","rule":[]}`, fault.Invalid, "rule is not a member that this server knows"},
		"given twice":         {`{"name":"n","name":"m"}`, fault.Invalid, "name is given twice"},
		"array":               {`[]`, fault.Invalid, "The policy must be a JSON object"},
		"large":               {`{"name":"` + strings.Repeat("n", policy.MaxBytes) + `"}`, fault.TooLarge, "The policy is larger than 1 MiB"},
		"large with defaults": {long, fault.TooLarge, "The policy with all defaults written out is larger than 1 MiB"},
	} {
		_, err := w.book.Create(t.Context(), red, ann, []byte(tc.document))
		refused(t, name, err, tc.kind, tc.message)
	}
	if len(long) > policy.MaxBytes {
		t.Errorf("the case of defaults is %d bytes long itself", len(long))
	}
	if list, err := w.book.List(t.Context(), red, "", 10); err != nil || len(list) != 1 {
		t.Errorf("got %v, %v; want what was there before", list, err)
	}
	w.create(red, "blue-only", "acme.pay")
}

// nearlyTooLong returns a policy that exceeds the limit only when its defaults are written out.
func nearlyTooLong() string {
	agents := strings.TrimSuffix(strings.Repeat(`"agent",`, 120), ",")
	rules := make([]string, policy.MaxRules)
	for i := range rules {
		rules[i] = fmt.Sprintf(`{"rule_id":"r%d","tool":"a.b","decision":"deny","reason":"%s","agents":[%s]}`, i, strings.Repeat("x", 1000), agents)
	}
	return `{"name":"n","rules":[` + strings.Join(rules, ",") + `]}`
}

func TestDraftChangesTheDraft(t *testing.T) {
	w := newWorld(t)
	first := w.create(red, "payments", "acme.pay")
	w.create(blue, "payments", "acme.pay")
	w.Pass(time.Second)
	v, err := w.book.Draft(t.Context(), red, "acc_bob", "payments", []byte(`{"default":"deny","policy_id":"payments"}`))
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.Parse(v.Document)
	if err != nil {
		t.Fatal(err)
	}
	if v.Version != 1 || v.State != policystore.Draft || p.Default != id.Deny || p.Name != "About acme.pay" || len(p.Rules) != 1 || v.WrittenBy != "acc_bob" || v.Digest == first.Digest {
		t.Errorf("got %+v", v)
	}
	back := w.draft(red, "payments", `{"default":null,"rules":null}`)
	if p, err := policy.Parse(back.Document); err != nil || p.Default != id.Allow || len(p.Rules) != 0 {
		t.Errorf("null: got %s, %v", back.Document, err)
	}
	if got := w.get(blue, "payments", 0); got.Digest != first.Digest {
		t.Error("the other organization's draft changed")
	}
}

func TestDraftOnAnActiveVersion(t *testing.T) {
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	first := w.activate(red, "payments")
	second := w.draft(red, "payments", `{"name":"Second"}`)
	if second.Version != 2 || second.State != policystore.Draft {
		t.Errorf("got %+v", second)
	}
	if again := w.draft(red, "payments", `{"name":"Still second"}`); again.Version != 2 {
		t.Errorf("got version %d, want 2", again.Version)
	}
	same(t, "version 1", w.get(red, "payments", 1), first)
	w.mustDecide(red, "acme.pay", "payments/1/r deny")
}

func TestDraftRefuses(t *testing.T) {
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	w.create(blue, "blue-only", "acme.pay")
	for name, tc := range map[string]struct {
		policyID, patch string
		kind            fault.Kind
		message         string
	}{
		"unknown":        {"nothing", `{}`, fault.NotFound, "Not found"},
		"blue's":         {"blue-only", `{}`, fault.NotFound, "Not found"},
		"version":        {"payments", `{"version":7}`, fault.Conflict, "The policy was changed in the meantime: read it again, or omit version and policy_digest"},
		"other id":       {"payments", `{"policy_id":"other"}`, fault.Invalid, "policy_id cannot be changed"},
		"null id":        {"payments", `{"policy_id":null}`, fault.Invalid, "policy_id cannot be changed"},
		"null name":      {"payments", `{"name":null}`, fault.Invalid, "name must have 1 to 256 characters, none of them a control character"},
		"bad rule":       {"payments", `{"rules":[{"rule_id":"r","tool":"a","decision":"maybe"}]}`, fault.Invalid, "rules[0].decision has a value of the wrong type or form"},
		"unknown member": {"payments", `{"rule":1}`, fault.Invalid, "rule is not a member that this server knows"},
		"array":          {"payments", `[]`, fault.Invalid, "The policy must be a JSON object"},
		"null":           {"payments", `null`, fault.Invalid, "The policy must be a JSON object"},
		"twice":          {"payments", `{"name":"a","name":"b"}`, fault.Invalid, `Member "name" appears twice: send it once`},
		"empty":          {"payments", ``, fault.Invalid, "The body is not valid JSON"},
		"large":          {"payments", `{"name":"` + strings.Repeat("n", policy.MaxBytes) + `"}`, fault.TooLarge, "The policy is larger than 1 MiB"},
	} {
		_, err := w.book.Draft(t.Context(), red, ann, tc.policyID, []byte(tc.patch))
		refused(t, name, err, tc.kind, tc.message)
	}
}

func TestDelete(t *testing.T) {
	const none = "The policy has no draft"
	w := newWorld(t)
	for _, tenant := range []id.Tenant{red, blue} {
		w.create(tenant, "only-draft", "acme.pay")
		w.create(tenant, "once-active", "acme.pay")
		w.activate(tenant, "once-active")
	}
	remove := func(policyID string) error { return w.book.Delete(t.Context(), red, policyID) }
	if err := remove("only-draft"); err != nil {
		t.Fatal(err)
	}
	refused(t, "gone", remove("only-draft"), fault.NotFound, "Not found")
	_, err := w.book.Get(t.Context(), red, "only-draft", 0)
	refused(t, "gone", err, fault.NotFound, "Not found")
	refused(t, "active", remove("once-active"), fault.Conflict, none)
	w.draft(red, "once-active", `{"name":"Second"}`)
	if err := remove("once-active"); err != nil {
		t.Fatal(err)
	}
	if got := w.get(red, "once-active", 0); got.Version != 1 || got.State != policystore.Active {
		t.Errorf("got %+v", got)
	}
	list, err := w.book.List(t.Context(), red, "", 10)
	if err != nil || len(list) != 1 || list[0].Name != "About acme.pay" || list[0].State != policystore.Active {
		t.Errorf("got %+v, %v", list, err)
	}
	refused(t, "active again", remove("once-active"), fault.Conflict, none)
	w.mustDecide(red, "acme.pay", "once-active/1/r deny")
	w.get(blue, "only-draft", 0)
	if v := w.create(red, "only-draft", "acme.other"); v.Version != 1 {
		t.Errorf("made again: got version %d", v.Version)
	}
}

// Many concurrent changes are all performed, and versions have no gap.
func TestDraftsAtOnce(t *testing.T) {
	w := newWorld(t)
	w.create(red, "payments", "acme.pay")
	w.activate(red, "payments")
	var group sync.WaitGroup
	for i := range 6 {
		group.Go(func() {
			rule := fmt.Sprintf(`{"name":"n%d"}`, i)
			if _, err := w.book.Draft(t.Context(), red, ann, "payments", []byte(rule)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if v := w.get(red, "payments", 0); v.Version != 2 || v.State != policystore.Draft {
		t.Errorf("got %+v", v)
	}
}

func TestCreateAtOnce(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	created := make(chan struct{}, 6)
	for range cap(created) {
		group.Go(func() {
			if _, err := w.book.Create(t.Context(), red, ann, document("payments", "acme.pay")); err == nil {
				created <- struct{}{}
			} else {
				refused(t, "loser", err, fault.Conflict, "policy_id is taken")
			}
		})
	}
	group.Wait()
	if len(created) != 1 {
		t.Errorf("created %d times, want once", len(created))
	}
}

// A draft that is deleted between two reads of it is not taken for damage of the store.
func TestDraftDeletedMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		do      func(w *world) error
		kind    fault.Kind
		message string
	}{
		"get": {func(w *world) error { _, err := w.book.Get(t.Context(), red, "payments", 0); return err }, fault.NotFound, "Not found"},
		"patch": {func(w *world) error {
			_, err := w.book.Draft(t.Context(), red, ann, "payments", []byte(`{}`))
			return err
		}, fault.NotFound, "Not found"},
		"activate": {func(w *world) error { _, err := w.book.Activate(t.Context(), red, ann, "payments"); return err }, fault.NotFound, "Not found"},
		"delete":   {func(w *world) error { return w.book.Delete(t.Context(), red, "payments") }, fault.NotFound, "Not found"},
	} {
		w := newWorld(t)
		w.create(red, "payments", "acme.pay")
		w.store.between = func(kind storage.Kind) {
			if kind != "policy" {
				return
			}
			w.store.between = nil
			if err := w.book.Delete(t.Context(), red, "payments"); err != nil {
				t.Error(err)
			}
		}
		refused(t, name, tc.do(w), tc.kind, tc.message)
	}
}

// A patch that changes nothing creates no version, whoever sends it and however it is spelled.
func TestPatchThatChangesNothing(t *testing.T) {
	w := newWorld(t)
	w.create(red, "p", "acme.pay")
	w.create(blue, "p", "acme.pay")
	patch := func(text string) policystore.Version {
		t.Helper()
		v, err := w.book.Draft(t.Context(), red, "acc_bob", "p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	draft, err := w.book.Get(t.Context(), red, "p", 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := patch(`{}`); got.State != policystore.Draft || got.Digest != draft.Digest || got.WrittenBy != draft.WrittenBy {
		t.Errorf("a draft: got %+v, want %+v", got, draft)
	}
	w.activate(red, "p")
	for _, text := range []string{`{}`, `{"tests":[]}`, string(draft.Document)} {
		if got := patch(text); got.State != policystore.Active || got.Version != 1 || got.WrittenBy != draft.WrittenBy {
			t.Errorf("active, %.40s: got %+v", text, got)
		}
	}
	if got := patch(`{"name":"another"}`); got.State != policystore.Draft || got.Version != 2 || got.WrittenBy != "acc_bob" {
		t.Errorf("a change: got %+v", got)
	}
}
