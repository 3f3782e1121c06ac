package policystore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
)

// voters is the number of members who may vote.
type voters map[id.Tenant]int

func (v voters) CountVoters(_ context.Context, t id.Tenant, _ int) (int, error) {
	if v[t] < 0 {
		return 0, fault.New(fault.Unavailable, "Accounts can't be read")
	}
	return v[t], nil
}

// A policy that requires more approvals than members can give is not activated, even when an older version becomes
// active again.
func TestQuorumWithinMembers(t *testing.T) {
	w := newWorld(t)
	electorate := voters{red: 2, blue: 3}
	w.book = policystore.New(policystore.Options{Records: w.store, Events: w.SystemEvents, Clock: w.Clock, Voters: electorate})
	ask := func(rule, mode string, approvals int) string {
		return fmt.Sprintf(`{"rule_id":"%s","tool":"acme.%s","mode":"%s","decision":"allow_with_obligation","obligations":[{"type":"human_approval","approvals":%d}]}`,
			rule, rule, mode, approvals)
	}
	three := "The rule b requires 3 approvals, but the number of members who may vote is 2"
	for i, tt := range []struct {
		name    string
		rules   string
		tenant  id.Tenant
		message string
	}{
		{"two of two", ask("a", "enforce", 1) + "," + ask("b", "enforce", 2), red, ""},
		{"three of two", ask("a", "enforce", 2) + "," + ask("b", "enforce", 3) + "," + ask("c", "enforce", 3), red, three},
		{"three of two in a shadow", ask("a", "enforce", 2) + "," + ask("b", "shadow", 3), red, ""},
		{"three of three", ask("b", "enforce", 3), blue, ""},
	} {
		name := fmt.Sprintf("p%d", i)
		text := `{"policy_id":"` + name + `","name":"n","rules":[` + tt.rules + `]}`
		if _, err := w.book.Create(t.Context(), tt.tenant, ann, []byte(text)); err != nil {
			t.Fatal(err)
		}
		before := w.State(t, tt.tenant).Size()
		_, err := w.book.Activate(t.Context(), tt.tenant, ann, name)
		if tt.message == "" {
			if err != nil {
				t.Errorf("%s: got %v", tt.name, err)
			}
			continue
		}
		refused(t, tt.name, err, fault.Conflict, tt.message)
		if got := fault.Of(err).Code; got != "quorum_unreachable" {
			t.Errorf("%s: got code %q", tt.name, got)
		}
		if after := w.State(t, tt.tenant).Size(); after != before {
			t.Errorf("%s: the ledger grew from %d to %d", tt.name, before, after)
		}
	}
	electorate[red] = 1
	_, err := w.book.ActivateVersion(t.Context(), red, ann, policystore.Activation{PolicyID: "p0", Version: 1})
	refused(t, "an older version", err, fault.Conflict, "The rule b requires 2 approvals, but the number of members who may vote is 1")
	electorate[red] = -1
	_, err = w.book.ActivateVersion(t.Context(), red, ann, policystore.Activation{PolicyID: "p0", Version: 1})
	refused(t, "members that can't be read", err, fault.Unavailable, "Accounts can't be read")
}
