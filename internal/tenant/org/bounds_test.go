package org_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/quota"
)

// own sets an organization's own limits, as the operator.
func (w *world) own(tenant id.Tenant, limits map[org.Limit]uint64) {
	w.t.Helper()
	patch := org.Patch{Limits: map[org.Limit]*uint64{}}
	for name, n := range limits {
		patch.Limits[name] = &n
	}
	if _, err := w.orgs.Change(w.t.Context(), tenant, sysevent.Operator, patch); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) tryCreate(tenant id.Tenant, name string) (org.IngestKey, error) {
	key, _, err := w.orgs.CreateIngestKey(w.t.Context(), tenant, ann, org.WantedKey{Name: name})
	return key, err
}

// Exactly as many ingest keys are created as the plan allows, however many are requested concurrently, and revoking one
// allows another.
func TestIngestKeysOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.IngestKeysLimit: 4}) // it already has one
	const full = "The organization has 4 ingest keys, as many as its plan allows: revoke one first"
	var made, refusals atomic.Int64
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			_, err := w.tryCreate(red, fmt.Sprint("k", i))
			switch {
			case err == nil:
				made.Add(1)
			case fault.Of(err).Message == full && fault.Of(err).Code == "plan_limit":
				refusals.Add(1)
			default:
				t.Error(err)
			}
			if _, err := w.tryCreate(blue, fmt.Sprint("k", i)); err != nil {
				t.Errorf("the other organization: %v", err)
			}
		})
	}
	group.Wait()
	if made.Load() != 3 || refusals.Load() != 5 {
		t.Errorf("got %d made and %d refused, want 3 and 5", made.Load(), refusals.Load())
	}
	for range 2 { // the second time nothing changes
		if err := w.orgs.RevokeIngestKey(t.Context(), red, ann, w.keyID[red]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.tryCreate(red, "in its place"); err != nil {
		t.Errorf("after one was revoked: %v", err)
	}
	w.orgs = w.open() // as after a restart
	_, err := w.tryCreate(red, "more")
	refused(t, "after a restart", err, fault.Conflict, full)
	usage, err := w.orgs.PlanUsage(t.Context(), red)
	if want := (quota.Count{Made: 5, Ended: 1}); err != nil || usage.IngestKeys != want || usage.Limits.IngestKeys != 4 {
		t.Errorf("usage: got %+v of %d, %v; want %+v of 4", usage.IngestKeys, usage.Limits.IngestKeys, err, want)
	}
}

// Revoked keys are kept, so ten times the limit is the largest number ever.
func TestRevokedIngestKeysOfAPlan(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.IngestKeysLimit: 1})
	last := w.keyID[red]
	for range 9 {
		if err := w.orgs.RevokeIngestKey(t.Context(), red, ann, last); err != nil {
			t.Fatal(err)
		}
		key, err := w.tryCreate(red, "next")
		if err != nil {
			t.Fatal(err)
		}
		last = key.ID
	}
	if err := w.orgs.RevokeIngestKey(t.Context(), red, ann, last); err != nil {
		t.Fatal(err)
	}
	_, err := w.tryCreate(red, "the eleventh")
	refused(t, "the eleventh", err, fault.Conflict, "The organization has created 10 ingest keys, ten times as many as its plan allows at once")
}

// Changes by people are limited by rate, across restarts; revoking and the operator never are.
func TestPaceOfChanges(t *testing.T) {
	w := newWorld(t)
	w.own(red, map[org.Limit]uint64{org.StatementsPerMinute: 2})
	const slower = "Too many changes: at most 2 in a minute"
	rename := func(principal, name string) error {
		_, err := w.orgs.Change(t.Context(), red, principal, org.Patch{Name: &name})
		return err
	}
	for i := range 2 {
		if err := rename(ann, fmt.Sprint("name ", i)); err != nil {
			t.Fatal(err)
		}
	}
	w.orgs = w.open() // as after a restart
	refused(t, "third change", rename(ann, "third"), fault.RateLimited, slower)
	_, err := w.tryCreate(red, "k")
	refused(t, "ingest key", err, fault.RateLimited, slower)
	if err := rename(ann, "name 1"); err != nil {
		t.Errorf("a change of nothing: %v", err)
	}
	if err := rename(sysevent.Operator, "the operator's"); err != nil {
		t.Errorf("the operator: %v", err)
	}
	if err := w.orgs.RevokeIngestKey(t.Context(), red, ann, w.keyID[red]); err != nil {
		t.Errorf("revoking: %v", err)
	}
	if name := "theirs"; true {
		if _, err := w.orgs.Change(t.Context(), blue, ann, org.Patch{Name: &name}); err != nil {
			t.Errorf("the other organization: %v", err)
		}
	}
	w.Pass(30 * time.Second)
	if err := rename(ann, "later"); err != nil {
		t.Errorf("after an interval: %v", err)
	}
	refused(t, "and another", rename(ann, "too early"), fault.RateLimited, slower)
}

// An organization's own limits replace those of its plan until they are removed.
func TestOwnLimits(t *testing.T) {
	w := newWorld(t)
	free := "free"
	w.change(red, org.Patch{Plan: &free})
	limits := func(tenant id.Tenant) quota.Limits {
		t.Helper()
		l, err := w.orgs.Limits(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	shipped := quota.Limits{Agents: 20, IngestKeys: 20, Policies: 20, PolicyVersions: 100, StatementsPerMinute: 60}
	if got := limits(red); got != shipped {
		t.Errorf("got %+v, want %+v", got, shipped)
	}
	w.own(red, map[org.Limit]uint64{org.AgentsLimit: 1, org.PoliciesLimit: 2, org.PolicyVersionsLimit: 3})
	if got, want := limits(red), (quota.Limits{Agents: 1, IngestKeys: 20, Policies: 2, PolicyVersions: 3, StatementsPerMinute: 60}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	w.change(red, org.Patch{Limits: map[org.Limit]*uint64{org.AgentsLimit: nil, org.PoliciesLimit: nil, org.PolicyVersionsLimit: nil, org.IngestKeysLimit: nil}})
	if got := limits(red); got != shipped {
		t.Errorf("got %+v, want %+v", got, shipped)
	}
	if got := limits(blue); got != org.DefaultLimits() {
		t.Errorf("blue: got %+v, want %+v", got, org.DefaultLimits())
	}
	zero, many := uint64(0), uint64(60_001)
	for name, tc := range map[string]struct {
		limit   org.Limit
		to      *uint64
		message string
	}{
		"none": {org.AgentsLimit, &zero, "agents must be 1 to 1000000000, or null for the plan's"},
		"fast": {org.StatementsPerMinute, &many, "statements_per_minute must be 1 to 60000, or null for the plan's"},
	} {
		_, err := w.orgs.Change(t.Context(), red, ann, org.Patch{Limits: map[org.Limit]*uint64{tc.limit: tc.to}})
		refused(t, name, err, fault.Invalid, tc.message)
	}
}

// Settings without own limits have the same bytes and digest as ever.
func TestSettingsWithoutLimitsAreAsBefore(t *testing.T) {
	w := newWorld(t)
	stored := func() string {
		t.Helper()
		r, err := w.Store.Get(t.Context(), red, "org", "")
		if err != nil {
			t.Fatal(err)
		}
		return string(r.Value)
	}
	before := stored()
	w.own(red, map[org.Limit]uint64{org.AgentsLimit: 7})
	if stored() == before {
		t.Error("the limit is not stored")
	}
	w.change(red, org.Patch{Limits: map[org.Limit]*uint64{org.AgentsLimit: nil}})
	if got := stored(); got != before {
		t.Errorf("got %s, want %s", got, before)
	}
}

// An ingest key is for agents of its own organization. An agent of another one and an unknown agent are refused alike,
// without the name.
func TestAgentsOfAnIngestKeyExist(t *testing.T) {
	w := newWorld(t)
	for name, tc := range map[string]struct {
		agents []id.Agent
		want   string
	}{
		"unknown":   {[]id.Agent{"robot", "nobody"}, "agents[1] is not an agent of the organization"},
		"another's": {[]id.Agent{"robot", "other-robot"}, "agents[1] is not an agent of the organization"},
		"first":     {[]id.Agent{"nobody", "robot"}, "agents[0] is not an agent of the organization"},
	} {
		_, _, err := w.orgs.CreateIngestKey(t.Context(), red, ann, org.WantedKey{Name: "k", Agents: tc.agents})
		refused(t, name, err, fault.Invalid, tc.want)
	}
	if _, _, err := w.orgs.CreateIngestKey(t.Context(), blue, ann, org.WantedKey{Name: "k", Agents: []id.Agent{"other-robot"}}); err != nil {
		t.Error(err)
	}
}
