package provision_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// world is a service without organizations.
type world struct {
	*ledgertest.Service
	t        testing.TB
	orgs     *org.Orgs
	agents   *agent.Agents
	accounts *account.Accounts
	*provision.Provisioner
}

func newWorld(t testing.TB) *world {
	t.Helper()
	var orgs *org.Orgs
	s := ledgertest.New(t, func(ctx context.Context, state *log.State) (id.Disclosure, error) {
		return orgs.Disclosure(ctx, state)
	})
	orgs, err := org.New(org.Options{Records: s.Store, Events: s.SystemEvents, Ledgers: s.Ledgers, Clock: s.Clock})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Service: s, t: t, orgs: orgs,
		agents:   agent.New(agent.Options{Records: s.Store, Events: s.SystemEvents, Clock: s.Clock}),
		accounts: account.New(account.Options{Records: s.Store, Clock: s.Clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1}}),
	}
	w.Provisioner = &provision.Provisioner{
		Ledgers: s.Ledgers, Organizations: orgs, Agents: w.agents, Accounts: w.accounts, Keyring: s.SystemEvents.Keyring, Host: "log.example",
	}
	return w
}

func request(slug id.Slug) provision.Request {
	return provision.Request{Name: "Name", Slug: slug, AdminEmail: "ann@example.com", AdminPassword: "correct horse battery"}
}

// another returns a request for the same person, whose account exists by then.
func another(slug id.Slug) provision.Request {
	r := request(slug)
	r.AdminPassword = ""
	return r
}

// make creates an organization. If it was offered to its owner, the owner accepts it.
func (w *world) make(r provision.Request) *provision.Result {
	w.t.Helper()
	made, err := w.CreateOrganization(w.t.Context(), r)
	if err == nil && made.Known {
		if _, err := w.accounts.Membership(w.t.Context(), made.Tenant, made.Membership.Account); !fault.Is(err, fault.NotFound) {
			w.t.Errorf("a membership that was only offered: got %v", err)
		}
		made.Membership, err = w.accounts.Accept(w.t.Context(), made.Tenant, made.Membership.Account)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return made
}

// works checks everything that a new organization must have.
func (w *world) works(made *provision.Result) {
	w.t.Helper()
	ctx, identity := w.t.Context(), made.State.Identity()
	if identity.Origin != id.Origin("log.example/o/"+identity.Organization.String()) || made.State.VerifierKey().Name() != string(identity.Origin) {
		w.t.Errorf("origin %q, log key %q", identity.Origin, made.State.VerifierKey())
	}
	caller, err := w.orgs.Authenticate(ctx, made.Token.Reveal())
	if err != nil || caller.Tenant != made.Tenant || caller.KeyID != made.IngestKey.ID {
		w.t.Errorf("ingest key: got %+v, %v", caller, err)
	}
	key, err := w.agents.SigningKey(ctx, made.State, made.Agent.Agent, made.Agent.Key)
	message := []byte("message")
	signature := made.Agent.Private.Sign(message)
	public := key.Public.Bytes()
	if err != nil || key.Status != agent.Active || !ed25519.Verify(public[:], message, signature[:]) {
		w.t.Errorf("agent's key: got %+v, %v", key, err)
	}
	m, err := w.accounts.Membership(ctx, made.Tenant, made.Membership.Account)
	if err != nil || m != made.Membership || m.Role != account.Owner {
		w.t.Errorf("membership: got %+v, %v", m, err)
	}
	for name, find := range map[string]func() (id.Tenant, error){
		"slug": func() (id.Tenant, error) { return w.orgs.BySlug(ctx, made.Slug) },
		"id":   func() (id.Tenant, error) { return w.orgs.ByID(ctx, identity.Organization) },
	} {
		if got, err := find(); got != made.Tenant || err != nil {
			w.t.Errorf("by %s: got %d, %v", name, got, err)
		}
	}
	if statements := w.Audit(w.t, made.Tenant); len(statements) != 0 {
		w.t.Errorf("a new log has entries: %v", statements)
	}
	// The system key works: the first event is a statement.
	name := "Renamed"
	if _, err := w.orgs.Change(ctx, made.Tenant, sysevent.Operator, org.Patch{Name: &name}); err != nil {
		w.t.Errorf("first statement: %v", err)
	}
	if statements := w.Audit(w.t, made.Tenant); len(statements) != 1 || statements[0].Principal != "operator" {
		w.t.Errorf("got %v", statements)
	}
}

func TestMake(t *testing.T) {
	w := newWorld(t)
	red := w.make(request("red"))
	second := another("blue")
	second.Organization, second.Plan, second.Disclosure = id.NewOrganization(), "free", id.DiscloseFull
	blue := w.make(second)
	w.works(red)
	w.works(blue)
	if got := blue.State.Identity().Organization; got != second.Organization {
		t.Errorf("got organization %s, want %s", got, second.Organization)
	}
	settings, err := w.orgs.Settings(t.Context(), blue.State)
	if err != nil || settings.Plan != "free" || settings.Disclosure != id.DiscloseFull {
		t.Errorf("got %+v, %v", settings, err)
	}
	if red.Membership.Account != blue.Membership.Account || red.Membership.ID == blue.Membership.ID {
		t.Errorf("one address: got %+v and %+v", red.Membership, blue.Membership)
	}
}

func TestMakeRefuses(t *testing.T) {
	w := newWorld(t)
	made := w.make(request("red"))
	for name, tc := range map[string]struct {
		change func(*provision.Request)
		kind   fault.Kind
		want   string
	}{
		"slug taken":  {func(r *provision.Request) { r.Slug = "red" }, fault.Conflict, "slug is taken"},
		"id taken":    {func(r *provision.Request) { r.Organization = made.State.Identity().Organization }, fault.Conflict, "organization_id is taken"},
		"slug":        {func(r *provision.Request) { r.Slug = "R" }, fault.Invalid, "slug must be 3 to 63 of a-z, 0-9 and single hyphens inside, and not a UUID"},
		"name":        {func(r *provision.Request) { r.Name = "" }, fault.Invalid, "name must have 1 to 200 characters"},
		"plan":        {func(r *provision.Request) { r.Plan = "gold" }, fault.Invalid, "plan is not known"},
		"admin_email": {func(r *provision.Request) { r.AdminEmail = "ann" }, fault.Invalid, "The e-mail address is malformed"},
		"password":    {func(r *provision.Request) { r.AdminPassword = "short" }, fault.Invalid, "The password must have at least 10 characters and at most 1024 bytes"},
	} {
		r := request("green")
		r.AdminEmail = "new@example.com"
		tc.change(&r)
		_, err := w.CreateOrganization(t.Context(), r)
		if f := fault.Of(err); err == nil || f.Kind != tc.kind || f.Message != tc.want {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if _, err := w.accounts.Find(t.Context(), "new@example.com"); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: the refused call made an account: %v", name, err)
		}
	}
	w.works(made)
	w.works(w.make(another("green")))
}

// Whatever the outcome of the one durable step, the answer matches what is stored, and a call that stored nothing can
// be repeated.
func TestMakeFails(t *testing.T) {
	for name, tc := range map[string]struct {
		failure storagetest.Failure
		kind    fault.Kind
		made    bool
	}{
		"refused":      {storagetest.Refused, fault.Unavailable, false},
		"request lost": {storagetest.RequestLost, fault.OutcomeUnknown, false},
		"answer lost":  {storagetest.AnswerLost, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := request("red")
			r.Organization = id.NewOrganization()
			w.Store.Fail(func(storage.Batch) storagetest.Failure { return tc.failure })
			made, err := w.CreateOrganization(t.Context(), r)
			w.Store.Fail(nil)
			if tc.made {
				if err != nil {
					t.Fatal(err)
				}
				w.works(made)
				_, err := w.CreateOrganization(t.Context(), r)
				if !fault.Is(err, fault.Conflict) {
					t.Errorf("again: got %v, want a conflict", err)
				}
				return
			}
			if !fault.Is(err, tc.kind) || made != nil {
				t.Fatalf("got %v, %v, want kind %d", made, err, tc.kind)
			}
			if _, err := w.orgs.BySlug(t.Context(), "red"); !fault.Is(err, fault.NotFound) {
				t.Errorf("what was not made is found: %v", err)
			}
			if m, err := w.accounts.Memberships(t.Context(), w.account().ID); len(m) != 0 || err != nil {
				t.Errorf("memberships in what was not made: %v, %v", m, err)
			}
			w.works(w.make(r))
		})
	}
}

func (w *world) account() account.Account {
	w.t.Helper()
	a, err := w.accounts.Find(w.t.Context(), "ann@example.com")
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

func TestOneOfManyCallsForASlugWins(t *testing.T) {
	w := newWorld(t)
	var won atomic.Pointer[provision.Result]
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			r := request("red")
			r.AdminEmail = fmt.Sprintf("admin%d@example.com", i)
			made, err := w.CreateOrganization(context.Background(), r)
			switch {
			case err == nil && !won.CompareAndSwap(nil, made):
				t.Error("two calls won")
			case err != nil && !fault.Is(err, fault.Conflict):
				t.Errorf("got %v, want a conflict", err)
			}
		})
	}
	group.Wait()
	if won.Load() == nil {
		t.Fatal("no call won")
	}
	w.works(won.Load())
}

// A call continues when its caller has gone, because half an organization helps nobody.
func TestMakeForACallerThatIsGone(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	made, err := w.CreateOrganization(ctx, request("red"))
	if err != nil {
		t.Fatal(err)
	}
	w.works(made)
}

// If the store has lost an organization, nobody else can take its slug.
func TestSlugOfALostOrganization(t *testing.T) {
	w := newWorld(t)
	w.make(request("red"))
	backup := w.Store.Reopen()
	w.make(another("blue"))
	w.Service = w.Again(t, backup)
	orgs, err := org.New(org.Options{Records: backup, Events: w.SystemEvents, Ledgers: w.Service.Ledgers, Clock: w.Clock})
	if err != nil {
		t.Fatal(err)
	}
	w.Provisioner.Organizations, w.Provisioner.Ledgers = orgs, w.Service.Ledgers
	if _, err := w.CreateOrganization(t.Context(), request("blue")); !fault.Is(err, fault.Conflict) || fault.Of(err).Message != "slug is taken" {
		t.Errorf("got %v, want that the slug is taken", err)
	}
	if _, err := orgs.BySlug(t.Context(), "red"); err != nil {
		t.Errorf("the other organization: %v", err)
	}
}
