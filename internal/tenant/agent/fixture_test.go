package agent_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/edkey"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/storage"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
	ann  = "acc_ann"
)

// world has two organizations, each of which begins with one agent.
type world struct {
	*ledgertest.Service
	t      testing.TB
	store  *blindStore
	agents *agent.Agents
	first  map[id.Tenant]agent.Credentials
}

func newWorld(t testing.TB) *world {
	t.Helper()
	s := ledgertest.New(t)
	w := &world{Service: s, t: t, store: &blindStore{RecordStore: s.Store}, first: map[id.Tenant]agent.Credentials{}}
	w.agents = agent.New(agent.Options{Records: w.store, Events: s.SystemEvents, Keyring: s.Keyring(), Clock: s.Clock})
	for _, tenant := range []id.Tenant{red, blue} {
		records, credentials, err := w.agents.NewAgent(t.Context(), tenant, sysevent.Operator, agent.Wanted{DisplayName: "first"})
		if err != nil {
			t.Fatal(err)
		}
		s.Found(t, tenant, records...)
		w.first[tenant] = credentials
	}
	return w
}

func (w *world) create(tenant id.Tenant, name id.Agent) agent.Credentials {
	w.t.Helper()
	_, credentials, err := w.agents.CreateAgent(w.t.Context(), tenant, ann, agent.Wanted{ID: name})
	if err != nil {
		w.t.Fatal(err)
	}
	return credentials
}

// registration returns a valid registration for an agent of a tenant.
func registration(tenant id.Tenant, name id.Agent, key id.Key, private edkey.Private) agent.Registration {
	proof := private.Sign(agent.ProofMessage(ledgertest.Organization(tenant), name, key, private.Public()))
	return agent.Registration{KeyID: key, PublicKey: private.Public().String(), Proof: encode(proof[:])}
}

func (w *world) register(tenant id.Tenant, name id.Agent, key id.Key, private edkey.Private) agent.Key {
	w.t.Helper()
	k, err := w.agents.RegisterKey(w.t.Context(), tenant, ann, name, registration(tenant, name, key, private))
	if err != nil {
		w.t.Fatal(err)
	}
	return k
}

func (w *world) signingKey(tenant id.Tenant, name id.Agent, key id.Key) (agent.Key, error) {
	w.t.Helper()
	return w.agents.SigningKey(w.t.Context(), w.State(w.t, tenant), name, key)
}

func (w *world) hasStatus(tenant id.Tenant, name id.Agent, key id.Key, want agent.Status) {
	w.t.Helper()
	if got, err := w.signingKey(tenant, name, key); err != nil || got.Status != want {
		w.t.Errorf("key %s of %s: got %s, %v; want %s", key, name, got.Status, err, want)
	}
}

// wantStatements verifies a tenant's ledger and checks its statements.
func (w *world) wantStatements(tenant id.Tenant, want ...ledgertest.Statement) {
	w.t.Helper()
	if got := w.Audit(w.t, tenant); !slices.Equal(got, want) {
		w.t.Errorf("tenant %d: got %+v, want %+v", tenant, got, want)
	}
}

// refused checks the kind and the message of an error.
func refused(t testing.TB, what string, err error, kind fault.Kind, message string) {
	t.Helper()
	if got := fault.Of(err); err == nil || got.Kind != kind || got.Message != message {
		t.Errorf("%s: got %v, want kind %d, %q", what, err, kind, message)
	}
}

// blindStore is a store whose records cannot be read for a while.
type blindStore struct {
	storage.RecordStore
	blind atomic.Bool
	reads atomic.Int64
}

var errBlind = errors.New("can't see")

func (b *blindStore) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	b.reads.Add(1)
	if b.blind.Load() {
		return storage.Record{}, errBlind
	}
	return b.RecordStore.Get(ctx, t, kind, key)
}

func (b *blindStore) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	if b.blind.Load() {
		return nil, errBlind
	}
	return b.RecordStore.Scan(ctx, t, kind, begin, end, limit)
}
