package org_test

import (
	"reflect"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/storage"
)

// An organization that another node owns is listed with its published usage.
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

// An organization whose plan was removed from the catalogue is listed without its usage.
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

// A record that cannot be read, or whose version cannot be followed, keeps no other organization out of the operator's
// list.
func TestListOrganizationsWithDamagedRecord(t *testing.T) {
	w := newWorld(t)
	r, err := w.Store.Get(t.Context(), red, org.Kind, "")
	if err != nil {
		t.Fatal(err)
	}
	change := storage.Change{Kind: org.Kind, Value: r.Value, If: r.Version, Version: storage.MaxVersion}
	if err := w.Store.Write(t.Context(), red, []storage.Change{change}); err != nil {
		t.Fatal(err)
	}
	name := "Another name"
	if _, err := w.orgs.Change(t.Context(), red, sysevent.Operator, org.Patch{Name: &name}); err == nil {
		t.Error("a version beyond the greatest was written")
	}
	check := func(unread bool) {
		t.Helper()
		all, err := w.orgs.ListOrganizations(t.Context(), "", 10)
		if err != nil || len(all) != 2 || all[0].Unread != "" || (all[1].Unread != "") != unread || all[1].Slug != "red" {
			t.Errorf("got %+v, %v", all, err)
		}
	}
	check(false)
	if err := w.Store.Write(t.Context(), red, []storage.Change{
		{Kind: org.Kind, If: storage.AnyVersion}, {Kind: org.Kind, Value: []byte("[]")},
	}); err != nil {
		t.Fatal(err)
	}
	check(true)
	if _, err := w.orgs.Change(t.Context(), blue, sysevent.Operator, org.Patch{Name: &name}); err != nil {
		t.Errorf("the other organization: %v", err)
	}
}
