package org_test

import (
	"context"
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
)

// try claims and creates, as one call of the platform does.
func (w *world) try(f org.Founding) error {
	changes, err := w.orgs.FoundOrganization(context.Background(), f)
	if err != nil {
		return err
	}
	origin := id.Origin("log.example/o/" + f.ID.String())
	_, err = w.Ledgers.Create(context.Background(), f.Tenant, log.Genesis{Organization: f.ID, Origin: origin, Changes: changes})
	return err
}

func TestFoundRefusesWhatIsTaken(t *testing.T) {
	w := newWorld(t)
	sameID := founding(20, "green")
	sameID.ID = ledgertest.Organization(red)
	refused(t, "organization_id", w.try(sameID), fault.Conflict, "organization_id is taken")
	sameSlug := founding(21, "red")
	refused(t, "slug", w.try(sameSlug), fault.Conflict, "slug is taken")
	if got := w.settings(red); got.Slug != "red" {
		t.Errorf("got %+v", got)
	}
	// What the refused call had claimed is free again.
	sameSlug.Tenant, sameSlug.Slug = 22, "green"
	if err := w.try(sameSlug); err != nil {
		t.Errorf("repeated with another slug: %v", err)
	}
}

func TestFoundRefusesWhatIsMalformed(t *testing.T) {
	w := newWorld(t)
	const slug = "slug must be 3 to 63 of a-z, 0-9 and single hyphens inside, and not a UUID"
	for name, tc := range map[string]struct {
		change func(*org.Founding)
		want   string
	}{
		"no name":      {func(f *org.Founding) { f.Name = "" }, "name must have 1 to 200 characters"},
		"slug":         {func(f *org.Founding) { f.Slug = "Green" }, slug},
		"unknown plan": {func(f *org.Founding) { f.Plan = "gold" }, "plan is not known"},
	} {
		f := founding(20, "green")
		tc.change(&f)
		refused(t, name, w.try(f), fault.Invalid, tc.want)
	}
}

// A call that died between its claims and the ledger is repeated by the next one, whose names may be any mixture of
// what dead calls left behind.
func TestFoundAfterACrash(t *testing.T) {
	w := newWorld(t)
	left := []org.Founding{founding(20, "green"), founding(21, "brown")}
	for _, f := range left {
		if _, err := w.orgs.FoundOrganization(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		_, err := w.orgs.BySlug(t.Context(), f.Slug)
		refused(t, "claimed only, by slug", err, fault.NotFound, "Not found")
		_, err = w.orgs.ByID(t.Context(), f.ID)
		refused(t, "claimed only, by id", err, fault.NotFound, "Not found")
	}
	mixed := left[0]
	mixed.Tenant, mixed.Slug = 22, left[1].Slug
	if err := w.try(mixed); err != nil {
		t.Fatalf("id of one, slug of the other: %v", err)
	}
	if got, err := w.orgs.BySlug(t.Context(), "brown"); err != nil || got != 22 {
		t.Errorf("by slug: got %d, %v", got, err)
	}
	_, err := w.orgs.BySlug(t.Context(), "green")
	refused(t, "slug of the dead", err, fault.NotFound, "Not found")
	_, err = w.orgs.ByID(t.Context(), left[1].ID)
	refused(t, "id of the dead", err, fault.NotFound, "Not found")
}

// A call that was only slow finds that its tenant is void once its claims are gone.
func TestSlowFoundingLoses(t *testing.T) {
	w := newWorld(t)
	slow := founding(20, "green")
	changes, err := w.orgs.FoundOrganization(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.try(founding(21, "green")); err != nil {
		t.Fatal(err)
	}
	_, err = w.Ledgers.Create(t.Context(), 20, log.Genesis{Organization: slow.ID, Origin: ledgertest.Origin(20), Changes: changes})
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	if got, err := w.orgs.BySlug(t.Context(), "green"); err != nil || got != 21 {
		t.Errorf("by slug: got %d, %v", got, err)
	}
	_, err = w.orgs.ByID(t.Context(), slow.ID)
	refused(t, "the slow one", err, fault.NotFound, "Not found")
}

func TestOneOfManyFoundingsWins(t *testing.T) {
	for name, change := range map[string]func(f *org.Founding, i int){
		"one slug": func(*org.Founding, int) {},
		"one id": func(f *org.Founding, i int) {
			f.ID, f.Slug = ledgertest.Organization(99), id.Slug(fmt.Sprintf("green-%d", i))
		},
		"one id, one slug": func(f *org.Founding, _ int) { f.ID = ledgertest.Organization(99) },
	} {
		t.Run(name, func(t *testing.T) { oneWins(t, change) })
	}
}

func oneWins(t *testing.T, change func(f *org.Founding, i int)) {
	w := newWorld(t)
	var won atomic.Int64
	var winner atomic.Pointer[org.Founding]
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			f := founding(id.Tenant(100+i), "green")
			change(&f, i)
			switch err := w.try(f); {
			case err == nil:
				won.Add(1)
				winner.Store(&f)
			case !fault.Is(err, fault.Conflict):
				t.Errorf("got %v, want a conflict", err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d foundings won, want 1", won.Load())
	}
	f := winner.Load()
	bySlug, err := w.orgs.BySlug(t.Context(), f.Slug)
	if err != nil || bySlug != f.Tenant {
		t.Errorf("by slug: got %d, %v", bySlug, err)
	}
	byID, err := w.orgs.ByID(t.Context(), f.ID)
	if err != nil || byID != f.Tenant {
		t.Errorf("by id: got %d, %v", byID, err)
	}
}

func TestParseSlug(t *testing.T) {
	for s, want := range map[string]bool{
		"abc": true, "a-b": true, "0-9-z": true, "acme": true,
		"a23456789-123456789-123456789-123456789-123456789-123456789-123": true,
		"":   false,
		"ab": false, "-ab": false, "ab-": false, "a--b": false, "Acme": false, "a_b": false, "a.b": false, "é12": false, "a b": false,
		"a23456789-123456789-123456789-123456789-123456789-123456789-1234": false,
		"8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11":                             false,
		"8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e1":                              true,
		"8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e1g":                             true,
	} {
		if got, err := org.ParseSlug(s); (err == nil) != want || err == nil && string(got) != s {
			t.Errorf("%q: got %q, %v", s, got, err)
		}
	}
}

func FuzzParseSlug(f *testing.F) {
	for _, seed := range []string{"abc", "a-b", "-a-", "a--b", "8d0f6d0a-5b1c-4c55-9a52-0c8d7c6f1e11"} {
		f.Add(seed)
	}
	grammar := regexp.MustCompile(`^[a-z0-9](-?[a-z0-9])*$`)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	f.Fuzz(func(t *testing.T, s string) {
		want := grammar.MatchString(s) && !uuid.MatchString(s) && len(s) >= 3 && len(s) <= 63
		if _, err := org.ParseSlug(s); (err == nil) != want {
			t.Errorf("%q: got %v, want %v", s, err, want)
		}
	})
}
