package policy_test

import (
	"strings"
	"testing"

	"github.com/agentledger/agentledger/policy"
)

// Documents without the member signed keep their digests; the member is part of the digest.
func TestSignedObligation(t *testing.T) {
	parse := func(member string) policy.Policy {
		t.Helper()
		d, err := policy.Parse([]byte(`{"policy_id":"p","name":"n","version":1,"rules":[{"rule_id":"r","tool":"a.b","decision":"allow_with_obligation",
			"obligations":[{"type":"human_approval"` + member + `}]}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	plain, off, on := parse(""), parse(`,"signed":false`), parse(`,"signed":true`)
	if on.Rules[0].Obligations[0].Signed != true || plain.Rules[0].Obligations[0].Signed {
		t.Error("the member is ignored")
	}
	if string(plain.Canonical()) != string(off.Canonical()) || strings.Contains(string(plain.Canonical()), "signed") {
		t.Errorf("without it: got %s", plain.Canonical())
	}
	if !strings.Contains(string(on.Canonical()), `{"approvals":1,"signed":true,"ttl_seconds":3600,"type":"human_approval"}`) {
		t.Errorf("with it: got %s", on.Canonical())
	}
}
