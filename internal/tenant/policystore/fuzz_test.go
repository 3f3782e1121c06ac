package policystore

import (
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/policy"
)

// Whatever a patch contains, the result is a policy with the same id, or the patch is refused for a reason that the
// client may see.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"name":"m"}`, `{"default":null}`, `{"rules":[{"rule_id":"r","tool":"a.**","decision":"allow"}]}`,
		`{"policy_id":"p"}`, `{"policy_id":"\u0070"}`, `{"version":2}`, `{"version":1.5,"state":7}`, `{"policy_digest":"x"}`, `{"versio\u006e":2}`, `null`, `[]`, `{"tests":[]}`, `{"name":"\ud800"}`, "",
	} {
		f.Add([]byte(seed))
	}
	base, err := policy.Parse([]byte(`{"policy_id":"p","name":"n","version":1,"default":"deny","rules":[{"rule_id":"r","tool":"a.b","decision":"deny"}]}`))
	if err != nil {
		f.Fatal(err)
	}
	document := base.Canonical()
	f.Fuzz(func(t *testing.T, patch []byte) {
		body, err := parsePatchBody("p", patch)
		if err == nil {
			var text []byte
			if text, err = overlayMembers(document, body.members); err != nil {
				t.Fatalf("%q: overlay: %v", patch, err)
			}
			var changed policy.Policy
			if changed, err = policy.Parse(text); err == nil && (changed.ID != "p" || changed.Version != 1) {
				t.Errorf("%q makes %s version %d of p version 1", patch, changed.ID, changed.Version)
			}
		}
		if err != nil && !fault.Is(err, fault.Invalid) && !fault.Is(err, fault.TooLarge) {
			t.Errorf("%q: got %v", patch, err)
		}
	})
}
