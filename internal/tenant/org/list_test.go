package org_test

import (
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
)

// An organization that another node owns is listed with its usage as it was shown.
func TestListOrganizationsOfOtherNodes(t *testing.T) {
	w := newWorld(t)
	others := elsewhere{w.Ledgers}
	orgs, err := org.New(org.Options{Records: w.Store, Events: w.SystemEvents, Ledgers: others, Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	got, err := orgs.ListOrganizations(t.Context(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	want, err := w.orgs.ListOrganizations(t.Context(), "", 10)
	if err != nil || len(got) != 2 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// An organization whose plan left the catalogue is listed, without its usage.
func TestListOrganizationsWithoutTheirPlan(t *testing.T) {
	w := newWorld(t)
	free := "free"
	for _, tenant := range []id.Tenant{red, blue} {
		if _, err := w.orgs.Change(t.Context(), tenant, sysevent.Operator, org.Patch{Plan: &free}); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		orgs *org.Orgs
		read bool
	}{
		"known":   {w.orgs, true},
		"unknown": {w.open(org.Plan{Name: "enterprise"}), false},
	} {
		all, err := tc.orgs.ListOrganizations(t.Context(), "", 10)
		if err != nil || len(all) != 2 || all[0].Slug != "blue" || all[1].Slug != "red" {
			t.Fatalf("%s: got %+v, %v", name, all, err)
		}
		for _, l := range all {
			if (l.Usage != nil) != tc.read || (l.Unread == "") != tc.read {
				t.Errorf("%s: got %+v", name, l)
			}
		}
	}
}
