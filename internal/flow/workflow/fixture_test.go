package workflow_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/tenant/agent"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

const (
	red  = ledgertest.Red
	blue = ledgertest.Blue
)

// world has two organizations with one agent each, in which tools report runs.
type world struct {
	*ledgertest.Service
	t         testing.TB
	records   *countingStore
	agents    *agent.Agents
	book      *policystore.Policies
	orgs      *orgs
	workflows *workflow.Workflows
	bot       map[id.Tenant]id.Agent // not enabled for the bridge
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, ledgertest.New(t))
}

// newWorldOn creates the organizations on a service that has none.
func newWorldOn(t testing.TB, s *ledgertest.Service) *world {
	t.Helper()
	w := &world{Service: s, t: t, orgs: &orgs{active: true}, bot: map[id.Tenant]id.Agent{}}
	w.open()
	for _, tenant := range []id.Tenant{red, blue} {
		records, credentials, err := w.agents.NewAgent(t.Context(), tenant, sysevent.Operator, agent.Wanted{})
		if err != nil {
			t.Fatal(err)
		}
		s.Found(t, tenant, records...)
		w.bot[tenant] = credentials.Agent
	}
	return w
}

// open starts a new process on the stored state.
func (w *world) open() {
	w.records = &countingStore{RecordStore: w.Engine}
	w.agents = agent.New(agent.Options{Records: w.Engine, Events: w.SystemEvents, Keyring: w.Keyring(), Clock: w.Clock})
	w.book = policystore.New(policystore.Options{Records: w.Engine, Events: w.SystemEvents, Clock: w.Clock})
	w.workflows = w.node()
}

// node returns another process on the same store, as far as runs are concerned.
func (w *world) node() *workflow.Workflows {
	return workflow.New(workflow.Options{
		Records: w.records, Events: w.SystemEvents, Ledgers: w.Ledgers, Policies: w.book, Agents: w.agents,
		Organizations: w.orgs, Silence: time.Hour, MaxBytes: 4096, Clock: w.Clock,
	})
}

// beginning is the start of a run that every key may make.
func beginning(external string) workflow.Beginning {
	return workflow.Beginning{Workflow: workflow.Flow{Name: "invoices", Version: "3", Tool: "n8n"}, External: external, IngestKeyID: "ik_1"}
}

func (w *world) start(tenant id.Tenant, b workflow.Beginning) workflow.Run {
	w.t.Helper()
	run, placed, made, err := w.workflows.Start(w.t.Context(), tenant, b)
	if err != nil || !made || placed.Replayed {
		w.t.Fatalf("start: made %v, %+v, %v", made, placed, err)
	}
	return run
}

// step is a step that names no tool.
func step(key string) workflow.Step {
	return workflow.Step{Key: key, Attempt: 1, Status: "succeeded", Payload: []byte(`{"n":1}`)}
}

func (w *world) record(tenant id.Tenant, run workflow.ID, steps ...workflow.Step) []workflow.Recorded {
	w.t.Helper()
	recorded, err := w.workflows.Record(w.t.Context(), tenant, "ik_1", run, steps)
	if err != nil {
		w.t.Fatal(err)
	}
	return recorded
}

func (w *world) complete(tenant id.Tenant, run workflow.ID) workflow.Run {
	w.t.Helper()
	ended, err := w.workflows.Complete(w.t.Context(), tenant, "ik_1", run, workflow.Ending{Status: workflow.Succeeded})
	if err != nil {
		w.t.Fatal(err)
	}
	return ended
}

func (w *world) get(tenant id.Tenant, run workflow.ID) (workflow.Run, []workflow.Event) {
	w.t.Helper()
	got, events, _, err := w.workflows.Get(w.t.Context(), tenant, "ik_1", run, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return got, events
}

// enable allows the bridge to act for the first agent of a tenant.
func (w *world) enable(tenant id.Tenant, on bool) {
	w.t.Helper()
	if _, err := w.agents.Change(w.t.Context(), tenant, "acc_ann", w.bot[tenant], agent.Patch{Bridge: &on}); err != nil {
		w.t.Fatal(err)
	}
}

// activate activates a policy.
func (w *world) activate(tenant id.Tenant, name, rules string) {
	w.t.Helper()
	if _, err := w.book.Create(w.t.Context(), tenant, "acc_rules", []byte(`{"policy_id":"`+name+`","name":"Test","rules":`+rules+`}`)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.book.Activate(w.t.Context(), tenant, "acc_rules", name); err != nil {
		w.t.Fatal(err)
	}
}

// runs returns the recorded transitions of runs, in ledger order.
func (w *world) runs(tenant id.Tenant) []string {
	w.t.Helper()
	var all []string
	for _, statement := range w.Audit(w.t, tenant) {
		if statement.Kind == "ledger_run" {
			all = append(all, between(statement.Payload, `"transition":"`, `"`)+" by "+statement.Principal)
		}
	}
	return all
}

// stored is an event of a tenant's ledger.
type stored struct {
	storage.Event
	record   event.Record
	envelope *event.Envelope
}

// ledger reads and verifies a tenant's whole ledger.
func (w *world) ledger(tenant id.Tenant) (all []stored) {
	w.t.Helper()
	w.Audit(w.t, tenant)
	state := w.State(w.t, tenant)
	for e, err := range w.Ledgers.Events(w.t.Context(), state, 0, state.Size(), storage.FieldRecord|storage.FieldEnvelope) {
		if err != nil {
			w.t.Fatal(err)
		}
		record, err := event.ParseRecord(e.Record)
		if err != nil {
			w.t.Fatal(err)
		}
		envelope, err := event.Parse(e.Envelope, event.Options{Server: true})
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, stored{e, record, envelope})
	}
	return all
}

// steps returns the events of steps in a tenant's ledger.
func (w *world) steps(tenant id.Tenant) (all []stored) {
	w.t.Helper()
	for _, e := range w.ledger(tenant) {
		if e.record.Signer == event.SignerBridge {
			all = append(all, e)
		}
	}
	return all
}

func between(s, before, after string) string {
	_, s, _ = strings.Cut(s, before)
	s, _, _ = strings.Cut(s, after)
	return s
}

// wantFault checks kind and message.
func wantFault(t testing.TB, name string, err error, kind fault.Kind, message string) {
	t.Helper()
	if f := fault.Of(err); err == nil || f.Kind != kind || f.Message != message {
		t.Errorf("%s: got %v, want kind %d, %q", name, err, kind, message)
	}
}

// once makes the next append of a tenant's events fail.
func (w *world) once(tenant id.Tenant, failure storagetest.Failure) {
	var first sync.Once
	w.Store.Fail(func(b storage.Batch) storagetest.Failure {
		f := storagetest.NoFailure
		if b.Tenant == tenant && len(b.Events) > 0 {
			first.Do(func() { f = failure })
		}
		return f
	})
}

// orgs has the settings of both organizations.
type orgs struct {
	mu     sync.Mutex
	active bool
	cap    uint64
}

func (o *orgs) set(active bool, cap uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.active, o.cap = active, cap
}

func (o *orgs) Settings(context.Context, *log.State) (*org.Settings, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return &org.Settings{Active: o.active, Disclosure: id.DiscloseRecord}, nil
}

func (o *orgs) EventsPerMonth(*org.Settings) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cap
}

// countingStore counts the records that are read.
type countingStore struct {
	storage.RecordStore
	reads atomic.Int64 // records read one by one
	lists atomic.Int64 // records read in scans
}

func (c *countingStore) Get(ctx context.Context, t id.Tenant, kind storage.Kind, key string) (storage.Record, error) {
	c.reads.Add(1)
	return c.RecordStore.Get(ctx, t, kind, key)
}

func (c *countingStore) Scan(ctx context.Context, t id.Tenant, kind storage.Kind, begin, end string, limit int) ([]storage.Record, error) {
	found, err := c.RecordStore.Scan(ctx, t, kind, begin, end, limit)
	c.lists.Add(int64(len(found)))
	return found, err
}
