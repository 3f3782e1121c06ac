// Package datadir opens the data of a service: its engine, its anchors and the keys that open sealed keys.
//
// Invariants:
//
//   - If a store is rejected, nothing changes: no key is generated before the engine is open.
//   - A master key is generated only if no ledger is sealed under another one.
//   - A store that OpenReadOnly or OpenCopy opens is not written to.
//   - A store whose texts are archived is not opened without its archive.
package datadir

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/http/listener"
	"github.com/agentledger/agentledger/internal/operate/rekey"
	"github.com/agentledger/agentledger/internal/operate/transfer"
	"github.com/agentledger/agentledger/internal/programversion"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/storage/pgstore/schema"
)

// Engine is a storage engine with metrics. Only openEngine, openEngineReadOnly and openArchive know which engine
// runs.
type Engine interface {
	storage.Engine
	Collector() prometheus.Collector
}

// IsRefusal reports whether this program cannot use a store until something is changed.
func IsRefusal(err error) bool {
	return errors.Is(err, schema.ErrRefused) || errors.Is(err, pebblestore.ErrFormat)
}

// openEngine opens the engine that the settings name. broken is called if the engine fails.
func openEngine(ctx context.Context, c config.Store, t config.Tuning, keys keySet, logger *slog.Logger,
	broken func(error)) (Engine, error) {
	if c.Storage != "" {
		fingerprints, err := keys.fingerprints()
		if err != nil {
			return nil, err
		}
		return pgstore.Open(ctx, pgstore.Options{URL: c.Storage, Logger: logger, Keys: fingerprints,
			Version: programversion.Read().Short(), OnOutdated: broken, ConnectAhead: true})
	}
	o := embeddedOptions(c, t, logger)
	o.OnBroken = broken
	return pebblestore.Open(o)
}

// openEngineReadOnly opens the engine of an existing store for reading.
func openEngineReadOnly(ctx context.Context, c config.Store, t config.Tuning, logger *slog.Logger) (Engine, error) {
	if c.Storage != "" {
		return pgstore.Open(ctx, pgstore.Options{URL: c.Storage, Logger: logger, ReadOnly: true,
			Version: programversion.Read().Short()})
	}
	o := embeddedOptions(c, t, logger)
	o.ReadOnly = true
	return pebblestore.Open(o)
}

func embeddedOptions(c config.Store, t config.Tuning, logger *slog.Logger) pebblestore.Options {
	return pebblestore.Options{
		Dir: c.DatabaseDir(), CacheBytes: int64(t.CacheMiB) << 20,
		MaxTables: listener.StoreTables(listener.OpenFileLimit()), Logger: logger,
	}
}

// Store is an opened store: the engine, the anchors and the keys that open sealed keys.
type Store struct {
	Engine  Engine
	Anchors *anchor.Folder // or nil, for a copy
	Keyring *seal.Keyring

	ReadOnly bool // nothing is written to it

	Release func() // if set, CloseEngine calls it before it closes the engine
}

// watcher is an engine that only one process writes to.
type watcher interface {
	WatchKinds(kinds ...storage.Kind) func() uint64
}

// Watch returns pebblestore.Engine.WatchKinds of the embedded engine, or nil if other processes also write to the store.
func (s *Store) Watch() func(kinds ...storage.Kind) (writes func() uint64) {
	if w, ok := s.Engine.(watcher); ok {
		return w.WatchKinds
	}
	return nil
}

// Open opens or creates the data directory, and opens the engine. It opens the engine before it generates a key, so that
// nothing changes if the store is rejected.
func Open(ctx context.Context, c config.Store, t config.Tuning, logger *slog.Logger,
	broken func(error)) (*Store, error) {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	keys, err := readMasterKeys(c)
	if err != nil {
		return nil, err
	}
	engine, err := openEngine(ctx, c, t, keys, logger, broken)
	if err == nil {
		engine, err = withArchive(ctx, engine, c, t, logger, false)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{Engine: engine}
	if !keys.found {
		keys.newest, err = s.makeMasterKey(ctx, c, len(keys.older) > 0)
	}
	if err == nil {
		s.Keyring, err = keys.buildKeyring()
	}
	if err == nil {
		err = s.checkAndOpenAnchors(ctx, c, anchor.Open)
	}
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return s, nil
}

// AnchorOpener is anchor.Open or anchor.OpenReadOnly.
type AnchorOpener func(dir string) (*anchor.Folder, error)

// OpenReadOnly opens an existing store for a command that only reads it: it does not write to the store and generates no
// key. openAnchors opens the anchors for reading, or also for writing.
func OpenReadOnly(ctx context.Context, c config.Store, t config.Tuning, logger *slog.Logger,
	openAnchors AnchorOpener) (*Store, error) {
	keys, err := readMasterKeys(c)
	if err != nil {
		return nil, err
	}
	keyring, err := keys.readingKeyring(c)
	if err != nil {
		return nil, err
	}
	engine, err := openEngineReadOnly(ctx, c, t, logger)
	if err == nil {
		engine, err = withArchive(ctx, engine, c, t, logger, true)
	}
	if err != nil {
		return nil, err
	}
	s := &Store{Engine: engine, Keyring: keyring, ReadOnly: true}
	if err := s.checkAndOpenAnchors(ctx, c, openAnchors); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return s, nil
}

// OpenCopy opens a copy of an embedded store, such as a snapshot, for reading. The anchors, which may be nil, are closed
// with the result. After an error, the caller must close them.
func OpenCopy(ctx context.Context, dir string, anchors *anchor.Folder, c config.Store, t config.Tuning,
	logger *slog.Logger) (*Store, error) {
	keys, err := readMasterKeys(c)
	if err != nil {
		return nil, err
	}
	keyring, err := keys.readingKeyring(c)
	if err != nil {
		return nil, err
	}
	o := embeddedOptions(c, t, logger)
	o.Dir, o.ReadOnly = dir, true
	copied, err := pebblestore.Open(o)
	if err != nil {
		return nil, err
	}
	engine, err := withArchive(ctx, copied, c, t, logger, true)
	if err != nil {
		return nil, err
	}
	if err := rekey.CheckMasterKeys(ctx, engine, keyring); err != nil {
		return nil, errors.Join(fmt.Errorf("master key: %w", err), engine.Close())
	}
	return &Store{Engine: engine, Keyring: keyring, Anchors: anchors, ReadOnly: true}, nil
}

// checkAndOpenAnchors checks that the keyring has every key that the store may need, and opens the anchors.
func (s *Store) checkAndOpenAnchors(ctx context.Context, c config.Store, openAnchors AnchorOpener) (err error) {
	if err := rekey.CheckMasterKeys(ctx, s.Engine, s.Keyring); err != nil {
		return fmt.Errorf("master key: %w", err)
	}
	s.Anchors, err = openAnchors(c.AnchorsDir())
	return err
}

// makeMasterKey generates the key of a store without ledgers. If there are ledgers, their keys are sealed under another
// key, which is lost unless the settings name it as an older key.
func (s *Store) makeMasterKey(ctx context.Context, c config.Store, replaces bool) (seal.Key, error) {
	for _, err := range s.Engine.Tenants(ctx) {
		if replaces {
			break
		}
		if err != nil {
			return seal.Key{}, fmt.Errorf("list ledgers: %w", err)
		}
		return seal.Key{}, fmt.Errorf("the store has ledgers, but there is no master key at %s: "+
			"restore the key", c.MasterKeyPath())
	}
	key, _, err := seal.LoadOrCreateKey(c.MasterKeyPath())
	if err != nil {
		return seal.Key{}, fmt.Errorf("master key: %w", err)
	}
	return key, nil
}

// Close closes a store whose ledgers were never opened.
func (s *Store) Close() (err error) {
	if s.Anchors != nil {
		err = s.Anchors.Close()
	}
	return errors.Join(err, s.CloseEngine())
}

// CloseEngine closes a store whose ledgers were opened and closed, which closed the anchors.
func (s *Store) CloseEngine() error {
	if s.Release != nil {
		s.Release()
	}
	return s.Engine.Close()
}

// TransferPlace returns the store for moving organizations.
func (s *Store) TransferPlace(logger *slog.Logger) transfer.Place {
	return transfer.Place{Store: s.Engine, Keyring: s.Keyring, Anchors: s.Anchors, Logger: logger}
}

// OpenServed opens the store of a service, or creates it at the first start. If there are anchors but no store, it
// returns an error and changes nothing, so that a backup can be restored.
func OpenServed(ctx context.Context, c config.Store, t config.Tuning, logger *slog.Logger,
	broken func(error)) (*Store, error) {
	if missing := Require(ctx, c); errors.Is(missing, ErrNoStore) && hasAnchors(c) {
		return nil, fmt.Errorf("there are anchors in %s, and %w: restore a backup, or use another folder of "+
			"anchors for a new store", c.AnchorsDir(), missing)
	}
	return Open(ctx, c, t, logger, broken)
}

// hasAnchors reports whether a service with these settings has shown checkpoints. If the anchors can't be read, it returns
// false, and the start fails with the reason.
func hasAnchors(c config.Store) bool {
	anchors, err := anchor.OpenBeside(c.AnchorsDir())
	if err != nil {
		return false
	}
	found := anchors.HasAny()
	return anchors.Close() == nil && found
}

// ErrNoStore is returned by Require if there is no store.
var ErrNoStore = errors.New("no store")

// Require returns ErrNoStore if there is no store. Commands that would create one call it first, because an empty store
// at a mistyped address has no faults.
func Require(ctx context.Context, c config.Store) error {
	if c.Storage == "" {
		if _, err := os.Stat(c.DatabaseDir()); err != nil {
			return fmt.Errorf("%w in the data directory: %w", ErrNoStore, err)
		}
		return nil
	}
	found, err := pgstore.Exists(ctx, pgstore.Options{URL: c.Storage})
	if err == nil && !found {
		err = fmt.Errorf("%w in the database", ErrNoStore)
	}
	return err
}
