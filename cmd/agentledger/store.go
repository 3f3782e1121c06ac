package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/descriptor"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/reseal"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
	"github.com/agentledger/agentledger/transfer"
)

// engine is what the program needs of a storage engine. Nothing behind openEngine
// knows which one runs.
type engine interface {
	storage.Engine
	Collector() prometheus.Collector
}

// openEngine opens the engine that the settings name. broken is called when it
// can't go on.
func openEngine(ctx context.Context, c config.Store, logger *slog.Logger, broken func(error)) (engine, error) {
	if c.Storage != "" {
		return pgstore.Open(ctx, pgstore.Options{URL: c.Storage, Logger: logger})
	}
	return pebblestore.Open(pebblestore.Options{Dir: c.DatabaseDir(), CacheBytes: c.CacheMiB << 20, MaxTables: descriptor.Tables(descriptor.Limit()), Logger: logger, OnBroken: broken})
}

// store is what a service keeps, opened: engine, anchors and the keys that open
// what is sealed in it.
type store struct {
	engine  engine
	anchors *log.Anchors
	keyring *seal.Keyring
}

// openStore opens the data directory, or makes it, and the engine.
func openStore(ctx context.Context, c config.Store, logger *slog.Logger, broken func(error)) (*store, error) {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	key, created, err := masterKey(c)
	if err != nil {
		return nil, err
	}
	older, err := olderMasterKeys(c)
	if err != nil {
		return nil, err
	}
	keyring, err := seal.NewKeyring(key, older...)
	if err != nil {
		return nil, fmt.Errorf("master key: %w", err)
	}
	engine, err := openEngine(ctx, c, logger, broken)
	if err != nil {
		return nil, err
	}
	s := &store{engine: engine, keyring: keyring}
	if created && len(older) == 0 {
		if err := s.refuseLostKey(ctx, c); err != nil {
			return nil, errors.Join(err, engine.Close())
		}
	}
	if err := reseal.Check(ctx, engine, keyring); err != nil {
		return nil, errors.Join(fmt.Errorf("master key: %w", err), engine.Close())
	}
	if s.anchors, err = log.OpenAnchors(c.AnchorsDir()); err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return s, nil
}

// refuseLostKey stops a start that made a new master key beside ledgers whose
// keys are sealed under another one.
func (s *store) refuseLostKey(ctx context.Context, c config.Store) error {
	for _, err := range s.engine.Tenants(ctx) {
		if err != nil {
			return fmt.Errorf("list ledgers: %w", err)
		}
		return errors.Join(
			fmt.Errorf("there are ledgers in the store and there was no master key at %s: bring the key back", c.MasterKeyPath()),
			os.Remove(c.MasterKeyPath()))
	}
	return nil
}

// Close closes a store whose ledgers were never opened.
func (s *store) Close() error { return errors.Join(s.anchors.Close(), s.engine.Close()) }

// place is the store as organizations are moved to and from it.
func (s *store) place(logger *slog.Logger) transfer.Place {
	return transfer.Place{Store: s.engine, Keyring: s.keyring, Anchors: s.anchors, Logger: logger}
}

// newLogger writes what a level lets through to w.
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
