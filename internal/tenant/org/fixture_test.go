package org_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
	ann  = "acc_ann"
)

// world has two organizations, "red" and "blue", each with an ingest key.
type world struct {
	*ledgertest.Service
	t     testing.TB
	orgs  *org.Orgs
	token map[id.Tenant]org.Token
	keyID map[id.Tenant]string
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, token: map[id.Tenant]org.Token{}, keyID: map[id.Tenant]string{}}
	w.Service = ledgertest.New(t, func(ctx context.Context, s *log.State) (id.Disclosure, error) {
		return w.orgs.Disclosure(ctx, s)
	})
	w.orgs = w.open()
	w.found(red, "red")
	w.found(blue, "blue")
	return w
}

// open returns the organizations as another process would see them: without caches.
func (w *world) open(plans ...org.Plan) *org.Orgs {
	w.t.Helper()
	orgs, err := org.New(org.Options{Records: w.Store, Events: w.SystemEvents, Ledgers: w.Ledgers, Agents: someAgents{{red, "robot"}, {blue, "other-robot"}}, Plans: plans, Clock: w.Clock})
	if err != nil {
		w.t.Fatal(err)
	}
	return orgs
}

// someAgents are the agents of organizations.
type someAgents []struct {
	tenant id.Tenant
	agent  id.Agent
}

func (s someAgents) Exists(_ context.Context, t id.Tenant, a id.Agent) (bool, error) {
	for _, one := range s {
		if one.tenant == t && one.agent == a {
			return true, nil
		}
	}
	return false, nil
}

func founding(t id.Tenant, slug id.Slug) org.Founding {
	return org.Founding{Tenant: t, ID: ledgertest.Organization(t), Slug: slug, Name: strings.ToUpper(string(slug))}
}

// found creates an organization the way package provision does.
func (w *world) found(tenant id.Tenant, slug id.Slug) {
	w.t.Helper()
	changes, err := w.orgs.FoundOrganization(w.t.Context(), founding(tenant, slug))
	if err != nil {
		w.t.Fatal(err)
	}
	change, key, token, err := w.orgs.NewIngestKey(w.t.Context(), tenant, sysevent.Operator, org.WantedKey{Name: "first"})
	if err != nil {
		w.t.Fatal(err)
	}
	w.token[tenant], w.keyID[tenant] = token, key.ID
	w.Service.Found(w.t, tenant, append(changes, change)...)
}

func (w *world) settings(tenant id.Tenant) *org.Settings {
	w.t.Helper()
	s, err := w.orgs.Settings(w.t.Context(), w.State(w.t, tenant))
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func (w *world) change(tenant id.Tenant, p org.Patch) *org.Settings {
	w.t.Helper()
	s, err := w.orgs.Change(w.t.Context(), tenant, ann, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// refused checks the kind and the message of an error.
func refused(t testing.TB, name string, err error, kind fault.Kind, message string) {
	t.Helper()
	if f := fault.Of(err); err == nil || f.Kind != kind || f.Message != message {
		t.Errorf("%s: got %v, want kind %d %q", name, err, kind, message)
	}
}
