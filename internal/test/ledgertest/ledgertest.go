// Package ledgertest is the fixture for tests of the packages above sysevent. It sets up ledgers of two organizations
// on a store in memory, with a clock that the test moves, and an auditor that reads and verifies the stored
// statements.
//
// It hides the genesis events, keys and anchors that ledgers need. Everything ends with the test.
package ledgertest

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/storagetest"
)

// The tenants of the two organizations.
const (
	Red  id.Tenant = 11
	Blue id.Tenant = 12
)

// Organization returns the id of a tenant's organization.
func Organization(t id.Tenant) id.Organization { return id.Organization{14: byte(t >> 8), 15: byte(t)} }

// Origin returns the origin of a tenant's log.
func Origin(t id.Tenant) id.Origin {
	return id.Origin("log.example/o/" + Organization(t).String())
}

// Service bundles the ledgers and the appender of system events that writes to them.
type Service struct {
	Store        *storagetest.Model // nil if the engine is not a Model
	Engine       storage.Engine     // holds everything
	Ledgers      *log.Ledgers
	SystemEvents *sysevent.Appender
	Witness      log.Witness // asked to confirm new logs; nil: none
	*Time
	keyring *seal.Keyring
	anchors string
	owned   func(id.Tenant) bool // nil: the store is not shared

	disclosure Disclosure
}

// Disclosure returns an organization's setting for new events (sysevent.Appender). Services are created without one or
// with one; without, it is DiscloseRecord.
type Disclosure = func(context.Context, *log.State) (id.Disclosure, error)

// Confirm implements log.Witness by calling Witness, if one is set by then.
func (s *Service) Confirm(ctx context.Context, state *log.State) {
	if s.Witness != nil {
		s.Witness.Confirm(ctx, state)
	}
}

// New returns a service without organizations on a store in memory. It ends with the test.
func New(t testing.TB, disclosure ...Disclosure) *Service {
	t.Helper()
	store := storagetest.NewModel()
	s := On(t, store, disclosure...)
	s.Store = store
	return s
}

// NewShared is New for one of several processes on a store. The service has the ledgers that owned returns true for
// (log.Options.Owned).
func NewShared(t testing.TB, owned func(id.Tenant) bool, disclosure ...Disclosure) *Service {
	t.Helper()
	store := storagetest.NewModel()
	s := &Service{Store: store, keyring: newKeyring(t, seal.NewKey()), Time: new(Time), owned: owned,
		disclosure: disclosureOf(disclosure)}
	s.open(t, store, t.TempDir())
	return s
}

// On is New on another engine, which the caller must close.
func On(t testing.TB, engine storage.Engine, disclosure ...Disclosure) *Service {
	t.Helper()
	return OnSealed(t, engine, seal.NewKey(), disclosure...)
}

// OnSealed is On with the caller's key, for a store that outlives the test. Ledgers that the store already has need
// Adopted.
func OnSealed(t testing.TB, engine storage.Engine, key seal.Key, disclosure ...Disclosure) *Service {
	t.Helper()
	s := &Service{keyring: newKeyring(t, key), Time: new(Time), disclosure: disclosureOf(disclosure)}
	s.open(t, engine, t.TempDir())
	return s
}

func newKeyring(t testing.TB, key seal.Key) *seal.Keyring {
	t.Helper()
	keyring, err := seal.NewKeyring(key)
	if err != nil {
		t.Fatal(err)
	}
	return keyring
}

// Again returns the service as it is after a restart on the same store. The old service must not write any more.
func (s *Service) Again(t testing.TB, engine storage.Engine) *Service {
	t.Helper()
	again := &Service{keyring: s.keyring, Time: s.Time, disclosure: s.disclosure}
	anchors := t.TempDir() // those of the one before, which may hold them still
	if err := os.CopyFS(anchors, os.DirFS(s.anchors)); err != nil {
		t.Fatal(err)
	}
	again.open(t, engine, anchors)
	return again
}

// Adopted returns the service as it is after a restart on another engine without anchors, after an operator has adopted
// the heads of the tenants.
func (s *Service) Adopted(t testing.TB, engine storage.Engine, tenants ...id.Tenant) *Service {
	t.Helper()
	again := &Service{keyring: s.keyring, Time: s.Time, disclosure: s.disclosure}
	again.open(t, engine, t.TempDir())
	for _, tenant := range tenants {
		if err := again.Ledgers.Adopt(t.Context(), tenant, again.State(t, tenant).Checkpoint()); err != nil {
			t.Fatal(err)
		}
	}
	return again
}

func (s *Service) open(t testing.TB, engine storage.Engine, anchors string) {
	t.Helper()
	journal, err := anchor.Open(anchors)
	if err != nil {
		t.Fatal(err)
	}
	s.Engine, s.anchors = engine, anchors
	s.Ledgers, err = log.Open(t.Context(), log.Options{
		Store: engine, Keyring: s.keyring, Anchors: journal, Clock: s.Clock, Witness: s,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Fatal:  func(err error) { t.Errorf("fatal: %v", err) },
		Owned:  s.owned,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Ledgers.Close() })
	s.SystemEvents = &sysevent.Appender{Ledgers: s.Ledgers, Records: engine, Keyring: s.keyring,
		Disclosure: s.disclosure, Clock: s.Clock}
}

// Anchors returns the directory of the service's anchors.
func (s *Service) Anchors() string { return s.anchors }

// Found creates a tenant's organization with its initial records.
func (s *Service) Found(t testing.TB, tenant id.Tenant, records ...storage.Change) {
	t.Helper()
	system, err := sysevent.NewSystemKey(s.keyring, Organization(tenant))
	if err != nil {
		t.Fatal(err)
	}
	genesis := Genesis(tenant)
	genesis.Changes = append(records, system)
	if _, err := s.Ledgers.Create(t.Context(), tenant, genesis); err != nil {
		t.Fatal(err)
	}
}

// State returns the published state of a tenant's ledger.
func (s *Service) State(t testing.TB, tenant id.Tenant) *log.State {
	t.Helper()
	state, err := s.Ledgers.State(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Keyring returns the keyring that seals the service's keys.
func (s *Service) Keyring() *seal.Keyring { return s.keyring }

func disclosureOf(given []Disclosure) Disclosure {
	if len(given) > 0 {
		return given[0]
	}
	return func(context.Context, *log.State) (id.Disclosure, error) { return id.DiscloseRecord, nil }
}
