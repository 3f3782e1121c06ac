package main

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
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
)

// engine is a storage engine with metrics. Only openEngine and openEngineReadOnly know which engine runs.
type engine interface {
	storage.Engine
	Collector() prometheus.Collector
}

// openEngine opens the engine that the settings name. broken is called when it can't go on.
func openEngine(ctx context.Context, c config.Store, t config.Tuning, logger *slog.Logger,
	broken func(error)) (engine, error) {
	if c.Storage != "" {
		return pgstore.Open(ctx, pgstore.Options{URL: c.Storage, Logger: logger})
	}
	o := embeddedOptions(c, t, logger)
	o.OnBroken = broken
	return pebblestore.Open(o)
}

// openEngineReadOnly opens an engine whose store is there, to read it alone.
func openEngineReadOnly(ctx context.Context, c config.Store, t config.Tuning, logger *slog.Logger) (engine, error) {
	if c.Storage != "" {
		return pgstore.Open(ctx, pgstore.Options{URL: c.Storage, Logger: logger, ReadOnly: true})
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

// store is an opened store: the engine, the anchors and the keys that open sealed keys.
type store struct {
	engine  engine
	anchors *anchor.Folder
	keyring *seal.Keyring

	readOnly bool // nothing is written to it
}

// openStore opens the data directory, or makes it, and the engine. It opens the engine
// before it makes a key, so that a store that is refused leaves all as it was.
func openStore(ctx context.Context, c config.Store, t config.Tuning, logger *slog.Logger,
	broken func(error)) (*store, error) {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	keys, err := readMasterKeys(c)
	if err != nil {
		return nil, err
	}
	engine, err := openEngine(ctx, c, t, logger, broken)
	if err != nil {
		return nil, err
	}
	s := &store{engine: engine}
	if !keys.found {
		keys.newest, err = s.makeMasterKey(ctx, c, len(keys.older) > 0)
	}
	if err == nil {
		s.keyring, err = keys.buildKeyring()
	}
	if err == nil {
		err = s.checkAndOpenAnchors(ctx, c, anchor.Open)
	}
	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return s, nil
}

// anchorOpener is anchor.Open or anchor.OpenReadOnly.
type anchorOpener func(dir string) (*anchor.Folder, error)

// openStoreReadOnly opens a store that is there for a command that only reads it: nothing in the store is written,
// and no key is made. openAnchors opens the anchors for reading alone, or for writing too.
func openStoreReadOnly(ctx context.Context, c config.Store, t config.Tuning, logger *slog.Logger,
	openAnchors anchorOpener) (*store, error) {
	keys, err := readMasterKeys(c)
	if err != nil {
		return nil, err
	}
	keyring, err := keys.readingKeyring(c)
	if err != nil {
		return nil, err
	}
	engine, err := openEngineReadOnly(ctx, c, t, logger)
	if err != nil {
		return nil, err
	}
	s := &store{engine: engine, keyring: keyring, readOnly: true}
	if err := s.checkAndOpenAnchors(ctx, c, openAnchors); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return s, nil
}

// checkAndOpenAnchors checks that the keyring has every key that the store may need, and opens the anchors.
func (s *store) checkAndOpenAnchors(ctx context.Context, c config.Store, openAnchors anchorOpener) (err error) {
	if err := rekey.CheckMasterKeys(ctx, s.engine, s.keyring); err != nil {
		return fmt.Errorf("master key: %w", err)
	}
	s.anchors, err = openAnchors(c.AnchorsDir())
	return err
}

// makeMasterKey makes the key of a store that has no ledger yet. Ledgers' keys are
// sealed under another one, which is lost, unless that is given as an older key.
func (s *store) makeMasterKey(ctx context.Context, c config.Store, replaces bool) (seal.Key, error) {
	for _, err := range s.engine.Tenants(ctx) {
		if replaces {
			break
		}
		if err != nil {
			return seal.Key{}, fmt.Errorf("list ledgers: %w", err)
		}
		return seal.Key{}, fmt.Errorf("there are ledgers in the store and there was no master key at %s: "+
			"bring the key back", c.MasterKeyPath())
	}
	key, _, err := seal.LoadOrCreateKey(c.MasterKeyPath())
	if err != nil {
		return seal.Key{}, fmt.Errorf("master key: %w", err)
	}
	return key, nil
}

// Close closes a store whose ledgers were never opened.
func (s *store) Close() error { return errors.Join(s.anchors.Close(), s.engine.Close()) }

// transferPlace is the store as organizations are moved to and from it.
func (s *store) transferPlace(logger *slog.Logger) transfer.Place {
	return transfer.Place{Store: s.engine, Keyring: s.keyring, Anchors: s.anchors, Logger: logger}
}

// newLogger returns a logger that writes lines of the configured level and above to w.
func newLogger(c config.Logging, w interface{ Write([]byte) (int, error) }) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
