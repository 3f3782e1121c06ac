package transfer_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/deliver/webhook"
	"github.com/agentledger/agentledger/internal/flow/approval"
	"github.com/agentledger/agentledger/internal/flow/workflow"
	"github.com/agentledger/agentledger/internal/operate/provision"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/internal/tenant/account"
	"github.com/agentledger/agentledger/internal/tenant/agent"
	"github.com/agentledger/agentledger/internal/tenant/factor"
	"github.com/agentledger/agentledger/internal/tenant/org"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
	"github.com/agentledger/agentledger/internal/test/enginetest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/audit"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// server is the PostgreSQL server that all tests share. The first test that needs it starts it.
var server struct {
	once sync.Once
	*pgtest.Server
	err error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.Server != nil {
		if err := server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func postgres(t testing.TB) storagetest.Engine {
	t.Helper()
	return openPostgres(t, freshPostgres(t))
}

// freshPostgres creates an empty database and returns its URL.
func freshPostgres(t testing.TB) string {
	t.Helper()
	server.once.Do(func() {
		server.Server, server.err = pgtest.Start()
	})
	if server.err != nil {
		t.Fatal(server.err)
	}
	url, err := server.NewSchema(enginetest.FillSchema)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

func openPostgres(t testing.TB, url string) storagetest.Engine {
	t.Helper()
	e, err := pgstore.Open(t.Context(), pgstore.Options{URL: url, Writers: 1, Readers: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func pebble(t testing.TB) storagetest.Engine {
	t.Helper()
	e, err := pebblestore.Open(pebblestore.Options{Dir: "data", FS: vfs.NewMem(), CacheBytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func model(testing.TB) storagetest.Engine { return storagetest.NewModel() }

// house is one service on one store. Its server is running while ledgers is set.
type house struct {
	t       testing.TB
	engine  storagetest.Engine
	keyring *seal.Keyring
	anchors string
	now     time.Time

	ledgers      *log.Ledgers
	systemEvents *sysevent.Appender
	orgs         *org.Orgs
	agents       *agent.Agents
	policies     *policystore.Policies
	accounts     *account.Accounts
	factors      *factor.Factors // nil until voterKeys is called
	approvals    *approval.Approvals
	workflows    *workflow.Workflows
	founder      *provision.Provisioner
}

func newKeyring(t testing.TB) *seal.Keyring {
	t.Helper()
	keyring, err := seal.NewKeyring(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	return keyring
}

// newHouse returns a service whose server does not run yet.
func newHouse(t testing.TB, engine storagetest.Engine, keyring *seal.Keyring) *house {
	return &house{t: t, engine: engine, keyring: keyring, anchors: t.TempDir(), now: time.Date(2026, 10, 20, 12, 0, 0, 0, time.UTC)}
}

func (h *house) openAnchors() *anchor.Folder {
	h.t.Helper()
	anchors, err := anchor.Open(h.anchors)
	if err != nil {
		h.t.Fatal(err)
	}
	return anchors
}

func (h *house) clock() time.Time { return h.now }

// start starts the server.
func (h *house) start() {
	h.t.Helper()
	var err error
	h.ledgers, err = log.Open(h.t.Context(), log.Options{
		Store: h.engine, Keyring: h.keyring, Anchors: h.openAnchors(), Clock: h.clock, Fatal: func(err error) { h.t.Errorf("fatal: %v", err) },
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.systemEvents = &sysevent.Appender{Ledgers: h.ledgers, Records: h.engine, Keyring: h.keyring, Clock: h.clock,
		Disclosure: func(ctx context.Context, s *log.State) (id.Disclosure, error) { return h.orgs.Disclosure(ctx, s) }}
	h.orgs, err = org.New(org.Options{Records: h.engine, Events: h.systemEvents, Ledgers: h.ledgers, Clock: h.clock})
	if err != nil {
		h.t.Fatal(err)
	}
	h.agents = agent.New(agent.Options{Records: h.engine, Events: h.systemEvents, Keyring: h.keyring, Clock: h.clock})
	h.policies = policystore.New(policystore.Options{Records: h.engine, Events: h.systemEvents, Clock: h.clock})
	h.accounts = account.New(account.Options{Records: h.engine, Clock: h.clock, Hashing: account.Hashing{MemoryKiB: 64, Passes: 1},
		Factors: func() account.Factors {
			if h.factors == nil {
				return nil
			}
			return h.factors
		}})
	h.approvals = approval.New(approval.Options{
		Records: h.engine, Events: h.systemEvents, Ledgers: h.ledgers, Policies: h.policies, Agents: h.agents,
		Organizations: h.orgs, Members: h.accounts, Keyring: h.keyring, Clock: h.clock,
		Webhooks: webhook.New(webhook.Options{Records: h.engine, Keyring: h.keyring, Clock: h.clock}),
	})
	h.workflows = workflow.New(workflow.Options{
		Records: h.engine, Events: h.systemEvents, Ledgers: h.ledgers, Policies: h.policies, Agents: h.agents, Organizations: h.orgs,
		Silence: time.Hour, Clock: h.clock,
	})
	h.founder = &provision.Provisioner{
		Ledgers: h.ledgers, Organizations: h.orgs, Agents: h.agents, Accounts: h.accounts, Keyring: h.keyring, Host: "log.example",
	}
}

// stop stops the server; the store stays open.
func (h *house) stop() {
	h.t.Helper()
	if err := h.ledgers.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.ledgers = nil
}

func (h *house) place(anchors *anchor.Folder) transfer.Place {
	return transfer.Place{Store: h.engine, Keyring: h.keyring, Anchors: anchors}
}

// exporter returns the export command with small pieces.
func (h *house) exporter(dir string, anchors *anchor.Folder) *transfer.Exporter {
	return &transfer.Exporter{Place: h.place(anchors), Dir: dir, PieceBytes: 256 << 10}
}

func (h *house) tryExport(dir, only string) error {
	h.t.Helper()
	anchors := h.openAnchors()
	_, err := h.exporter(dir, anchors).Run(h.t.Context(), only)
	if err := anchors.Close(); err != nil {
		h.t.Fatal(err)
	}
	return err
}

func (h *house) export(dir, only string) {
	h.t.Helper()
	if err := h.tryExport(dir, only); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) retire(dir string) error {
	h.t.Helper()
	anchors := h.openAnchors()
	defer anchors.Close()
	return h.exporter(dir, anchors).Retire(h.t.Context())
}

func (h *house) tryImport(dir, only string) ([]transfer.Arrived, error) {
	h.t.Helper()
	i := &transfer.Importer{Place: h.place(h.openAnchors()), Dir: dir, Sealed: rekey.SealedRecords()}
	return i.Run(h.t.Context(), only)
}

// checkExport runs import --check.
func (h *house) checkExport(dir, only string) ([]transfer.Organization, error) {
	i := &transfer.Importer{Place: transfer.Place{Keyring: h.keyring}, Dir: dir, Sealed: rekey.SealedRecords()}
	return i.Check(h.t.Context(), only)
}

func (h *house) imports(dir, only string) []transfer.Arrived {
	h.t.Helper()
	arrived, err := h.tryImport(dir, only)
	if err != nil {
		h.t.Fatal(err)
	}
	return arrived
}

// fsck checks that the store has no faults.
func (h *house) fsck() {
	h.t.Helper()
	anchors := h.openAnchors()
	defer anchors.Close()
	_, err := audit.Fsck(h.t.Context(), h.engine, h.keyring, anchors, func(f audit.Finding) { h.t.Errorf("fsck: %v", f) })
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) state(t id.Tenant) *log.State {
	h.t.Helper()
	s, err := h.ledgers.State(h.t.Context(), t)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}
