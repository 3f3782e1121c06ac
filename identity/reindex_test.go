package identity_test

import (
	"context"
	"slices"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/identity"
)

// The operator can rebuild the index of one organization, by slug or id.
func TestReindex(t *testing.T) {
	var got []id.Tenant
	var refused error
	w := newWorld(t, func(o *identity.Options) {
		o.Operator.Reindex = func(_ context.Context, tenant id.Tenant) error {
			got = append(got, tenant)
			return refused
		}
	})
	red, _ := w.organization("red"), w.organization("blue")
	tenant, err := w.orgs.BySlug(t.Context(), "red")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"red", red.OrganizationID} {
		answers(t, name, w.platform("POST", organizations+"/"+name+"/reindex", ""), 204, ``)
	}
	refused = fault.New(fault.Conflict, "The index is already being rebuilt")
	answers(t, "again", w.platform("POST", organizations+"/red/reindex", ""), 409, refusal("The index is already being rebuilt"))
	if !slices.Equal(got, []id.Tenant{tenant, tenant, tenant}) {
		t.Errorf("got %v, want %d each time", got, tenant)
	}
	answers(t, "unknown", w.platform("POST", organizations+"/green/reindex", ""), 404, refusal("Not found"))
	answers(t, "a stranger", w.call("POST", organizations+"/red/reindex", ""), 401, refusal("Invalid platform secret"))
}
