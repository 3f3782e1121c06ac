package org_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

func TestFoundedOrganization(t *testing.T) {
	w := newWorld(t)
	got := *w.settings(red)
	want := org.Settings{
		Tenant: red, ID: ledgertest.Organization(red), Slug: "red", Name: "RED", Origin: ledgertest.Origin(red),
		Plan: "enterprise", Active: true, Disclosure: id.DiscloseRecord, CreatedAt: id.InstantOf(w.Clock()),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, tenant := range []id.Tenant{red, blue} {
		if statements := w.Audit(t, tenant); len(statements) != 0 {
			t.Errorf("a new log has entries: %v", statements)
		}
	}
	bySlug, err := w.orgs.BySlug(t.Context(), "blue")
	if err != nil || bySlug != blue {
		t.Errorf("by slug: got %d, %v", bySlug, err)
	}
	byID, err := w.orgs.ByID(t.Context(), ledgertest.Organization(red))
	if err != nil || byID != red {
		t.Errorf("by id: got %d, %v", byID, err)
	}
	_, err = w.orgs.BySlug(t.Context(), "green")
	refused(t, "unknown slug", err, fault.NotFound, "Not found")
	_, err = w.orgs.ByID(t.Context(), id.NewOrganization())
	refused(t, "unknown id", err, fault.NotFound, "Not found")
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func TestChangeIsStated(t *testing.T) {
	w := newWorld(t)
	name, plan, off, full, limit := "Ré d", "team", false, id.DiscloseFull, uint64(7)
	limited := &limit
	got := w.change(red, org.Patch{Name: &name, Plan: &plan, Active: &off, Disclosure: &full, EventsPerMonth: &limited})
	if fresh := w.settings(red); *fresh.EventsPerMonth != 7 || fresh.Name != name || fresh.Active || fresh.Disclosure != full || fresh.Plan != plan {
		t.Errorf("got %+v", fresh)
	}
	if got.Name != name || w.orgs.EventsPerMonth(got) != 7 {
		t.Errorf("returned %+v", got)
	}
	if other := w.settings(blue); other.Name != "BLUE" || !other.Active {
		t.Errorf("the other organization changed: %+v", other)
	}
	before := sum(`{"active":true,"disclosure":"record","events_per_month":null,"name":"RED","plan":"enterprise","self_review":false}`)
	after := sum(`{"active":false,"disclosure":"full","events_per_month":7,"name":"Ré d","plan":"team","self_review":false}`)
	want := ledgertest.Statement{Kind: "ledger_settings_changed", Principal: ann, Payload: fmt.Sprintf(
		`{"after_digest":%q,"before_digest":%q,"names":["active","disclosure","events_per_month","name","plan"]}`, after, before)}
	if statements := w.Audit(t, red); len(statements) != 1 || statements[0] != want {
		t.Errorf("got %v, want %v", statements, want)
	}
	if statements := w.Audit(t, blue); len(statements) != 0 {
		t.Errorf("stated in the other ledger: %v", statements)
	}
}

func TestUnchangedIsNotStated(t *testing.T) {
	w := newWorld(t)
	name, on := "RED", true
	var none *uint64
	got := w.change(red, org.Patch{Name: &name, Active: &on, EventsPerMonth: &none})
	if got == nil || got.Name != "RED" {
		t.Errorf("got %+v", got)
	}
	if statements := w.Audit(t, red); len(statements) != 0 {
		t.Errorf("got %v, want no statement", statements)
	}
}

func TestLimitOverridesPlan(t *testing.T) {
	w := newWorld(t)
	limit, free := uint64(3), "free"
	own := &limit
	var none *uint64
	for name, step := range map[string]struct {
		patch org.Patch
		want  uint64
	}{
		"no cap":           {org.Patch{}, 0},
		"own limit":        {org.Patch{EventsPerMonth: &own}, 3},
		"own limit stays":  {org.Patch{Plan: &free, EventsPerMonth: &own}, 3},
		"plan":             {org.Patch{Plan: &free}, 10_000},
		"own taken away":   {org.Patch{Plan: &free, EventsPerMonth: &none}, 10_000},
		"limit of no plan": {org.Patch{EventsPerMonth: &none}, 0},
	} {
		enterprise := org.DefaultPlan
		w.change(red, org.Patch{Plan: &enterprise, EventsPerMonth: &none})
		if got := w.orgs.EventsPerMonth(w.change(red, step.patch)); got != step.want {
			t.Errorf("%s: got %d, want %d", name, got, step.want)
		}
	}
}

func TestChangeRefuses(t *testing.T) {
	w := newWorld(t)
	text := func(s string) *string { return &s }
	number := func(n uint64) **uint64 { p := &n; return &p }
	for name, tc := range map[string]struct {
		patch org.Patch
		want  string
	}{
		"empty name":         {org.Patch{Name: text("")}, "name must have 1 to 200 characters"},
		"name with newline":  {org.Patch{Name: text("a\nb")}, "name must not have control characters"},
		"unknown plan":       {org.Patch{Plan: text("gold")}, "plan is not known"},
		"no events":          {org.Patch{EventsPerMonth: number(0)}, "events_per_month must be 1 to 1000000000000, or null for the plan's"},
		"events beyond JSON": {org.Patch{EventsPerMonth: number(1 << 60)}, "events_per_month must be 1 to 1000000000000, or null for the plan's"},
	} {
		_, err := w.orgs.Change(t.Context(), red, ann, tc.patch)
		refused(t, name, err, fault.Invalid, tc.want)
	}
	_, err := w.orgs.Change(t.Context(), 99, ann, org.Patch{Name: text("x")})
	refused(t, "unknown tenant", err, fault.NotFound, "Not found")
}

// Two concurrent changes are both performed, one after the other.
func TestConcurrentChanges(t *testing.T) {
	w := newWorld(t)
	done := make(chan error, 2)
	name, plan := "other", "team"
	for _, p := range []org.Patch{{Name: &name}, {Plan: &plan}} {
		go func() {
			_, err := w.orgs.Change(context.Background(), red, ann, p)
			done <- err
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := w.settings(red); got.Name != name || got.Plan != plan {
		t.Errorf("got %+v", got)
	}
	if statements := w.Audit(t, red); len(statements) != 2 {
		t.Errorf("got %d statements, want 2", len(statements))
	}
}

// If the settings cannot be read or the plan is unknown, everything is refused.
func TestSettingsFailClosed(t *testing.T) {
	w := newWorld(t)
	free := "free"
	w.change(red, org.Patch{Plan: &free})
	smaller := w.open(org.Plan{Name: org.DefaultPlan})
	_, err := smaller.Settings(t.Context(), w.State(t, red))
	refused(t, "plan of no catalogue", err, fault.Unavailable, "The organization can't be read")

	w.Service.Found(t, 13)
	_, err = w.orgs.Settings(t.Context(), w.State(t, 13))
	refused(t, "no record", err, fault.Unavailable, "The organization can't be read")

	state := w.State(t, blue)
	w.Store.Break()
	_, err = w.open().Settings(t.Context(), state)
	refused(t, "broken store", err, fault.Unavailable, "The organization can't be read")
}

func TestPlanUsage(t *testing.T) {
	w := newWorld(t)
	free := "free"
	w.change(red, org.Patch{Plan: &free})
	check := func(name string, tenant id.Tenant, plan, month, resets string, used, limit uint64) {
		t.Helper()
		got, err := w.orgs.PlanUsage(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		if got.Plan != plan || got.Month != month || got.ResetsAt.String() != resets || got.EventsThisMonth != used || got.EventsPerMonth != limit {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	check("statements do not count", red, "free", "2026-11", "2026-12-01T00:00:00.000Z", 0, 10_000)
	check("no cap", blue, "enterprise", "2026-11", "2026-12-01T00:00:00.000Z", 0, 0)
	w.count(red, 3)
	check("events", red, "free", "2026-11", "2026-12-01T00:00:00.000Z", 3, 10_000)
	w.Pass(30 * 24 * time.Hour)
	check("next month", red, "free", "2026-12", "2027-01-01T00:00:00.000Z", 0, 10_000)
}

// count appends n events that count.
func (w *world) count(tenant id.Tenant, n int) {
	w.t.Helper()
	_, err := w.Ledgers.Append(w.t.Context(), tenant, func(_ context.Context, _ *log.State) (log.Submission, error) {
		drafts := make([]log.Draft, n)
		for i := range drafts {
			drafts[i] = log.Draft{ID: id.Event(fmt.Sprint(i)), Counted: true, Columns: storage.Columns{Effective: id.Allow, Disclosure: id.DiscloseRecord}}
		}
		return log.Submission{Drafts: drafts}, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestNewRefuses(t *testing.T) {
	w := newWorld(t)
	for name, o := range map[string]org.Options{
		"no default plan":   {Plans: []org.Plan{{Name: "free"}}},
		"plan twice":        {Plans: []org.Plan{{Name: "enterprise"}, {Name: "enterprise"}}},
		"plan's name":       {Plans: []org.Plan{{Name: "enterprise"}, {Name: "Gold"}}},
		"environment":       {Environment: "prod_1"},
		"environment, long": {Environment: "aaaaaaaaaaaaaaaaa"},
	} {
		o.Records, o.Events, o.Ledgers = w.Store, w.SystemEvents, w.Ledgers
		if _, err := org.New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func BenchmarkSettings(b *testing.B) {
	w := newWorld(b)
	state := w.State(b, red)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.orgs.Settings(b.Context(), state); err != nil {
			b.Fatal(err)
		}
	}
}
