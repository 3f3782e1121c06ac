package identity_test

import (
	"context"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
)

// The operator can ask the witnesses of one organization's log, by its slug or id.
func TestAskWitnesses(t *testing.T) {
	var got []id.Tenant
	names := []string{"w1", "w2"}
	w := newWorld(t, func(o *identity.Options) {
		o.Operator.Witnesses = func(_ context.Context, tenant id.Tenant) ([]string, error) {
			got = append(got, tenant)
			return names, nil
		}
	})
	red, _ := w.organization("red"), w.organization("blue")
	tenant, err := w.orgs.BySlug(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"red", red.OrganizationID} {
		answers(t, name, w.platform("POST", organizations+"/"+name+"/witnesses/ask", ""), 202, `{"asked":["w1","w2"]}`)
	}
	names = nil
	answers(t, "nobody is configured", w.platform("POST", organizations+"/red/witnesses/ask", ""), 202, `{"asked":[]}`)
	if len(got) != 3 || got[0] != tenant || got[1] != tenant || got[2] != tenant {
		t.Errorf("got %v, want %d each time", got, tenant)
	}
	answers(t, "unknown", w.platform("POST", organizations+"/green/witnesses/ask", ""), 404, refusal("Not found"))
	answers(t, "a stranger", w.call("POST", organizations+"/red/witnesses/ask", ""), 401, refusal("Invalid platform secret"))
}
