package publicapi_test

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/policy"
)

// The public can read the document that a record names, if the organization publishes it.
func TestPublishedPolicies(t *testing.T) {
	w := newWorld(t)
	digests := map[uint64]id.Hash{}
	for version, name := range []string{"First", "Second", "Draft"} {
		document := `{"policy_id":"p","name":"` + name + `","rules":[{"rule_id":"r","tool":"a.b","decision":"deny"}],"tests":[{"name":"secret","input":{"tool_name":"a.b"},"expect":{"decision":"deny"}}]}`
		made, err := w.policies.Create(t.Context(), w.red.tenant, "acc_ann", []byte(document))
		if version > 0 {
			made, err = w.policies.Draft(t.Context(), w.red.tenant, "acc_ann", "p", []byte(`{"name":"`+name+`"}`))
		}
		if err == nil && name != "Draft" {
			_, err = w.policies.Activate(t.Context(), w.red.tenant, "acc_ann", "p")
		}
		if err != nil {
			t.Fatal(err)
		}
		digests[made.Version] = made.Digest
	}
	address := func(slug string, digest id.Hash) string {
		return "/v1/public/orgs/" + slug + "/policies/" + digest.String()
	}
	missing := func(why, target string) {
		t.Helper()
		if got := w.do(http.MethodGet, target); got.Code != http.StatusNotFound || !strings.Contains(got.Body.String(), `"Not found"`) {
			t.Errorf("%s: got %d %s", why, got.Code, got.Body)
		}
	}
	publish := func(o *owner, on bool) {
		t.Helper()
		if _, err := w.orgs.Change(t.Context(), o.tenant, "acc_ann", org.Patch{Published: &on}); err != nil {
			t.Fatal(err)
		}
	}
	missing("by default", address("red", digests[1]))
	publish(&w.red, true)
	publish(&w.blue, true)
	for version := uint64(1); version <= 2; version++ {
		answer := w.get(address("red", digests[version]))
		if sha256.Sum256(answer.Body.Bytes()) != digests[version] {
			t.Errorf("version %d: the bytes have another digest: %s", version, answer.Body)
		}
		p, err := policy.ParseStored(answer.Body.Bytes())
		if err != nil || p.Version != version || len(p.Tests) != 0 {
			t.Errorf("version %d: got %+v, %v", version, p, err)
		}
		again := w.do(http.MethodGet, address("red", digests[version]), "If-None-Match: "+answer.Header().Get("ETag"))
		if again.Code != http.StatusNotModified {
			t.Errorf("version %d: got %d, want 304", version, again.Code)
		}
	}
	if got := w.do(http.MethodOptions, address("red", digests[1])); got.Code != http.StatusNoContent {
		t.Errorf("OPTIONS: got %d", got.Code)
	}
	if got := w.do(http.MethodGet, address("red", digests[1])+"?origin=%zz"); got.Code != http.StatusUnprocessableEntity {
		t.Errorf("a malformed query: got %d %s", got.Code, got.Body)
	}
	missing("a draft", address("red", digests[3]))
	missing("of another organization", address("blue", digests[1]))
	missing("of no organization", address("green", digests[1]))
	missing("no digest", "/v1/public/orgs/red/policies/p")
	publish(&w.red, false)
	missing("switched off", address("red", digests[1]))
}
