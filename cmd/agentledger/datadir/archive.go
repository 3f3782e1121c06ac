package datadir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/config"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/storage/archive"
	"github.com/agentledger/agentledger/storage/archive/objects"
	"github.com/agentledger/agentledger/storage/pebblestore"
	"github.com/agentledger/agentledger/storage/pgstore"
)

// errNoArchive: texts of the store are in an archive that the settings do not name.
var errNoArchive = errors.New("texts of this store are in an archive: name it by --archive")

// archiveTime bounds the first question to the object store, so that one that hangs does not delay a start for long.
const archiveTime = 10 * time.Second

// withArchive puts the archive of the settings around an engine, which it closes when it can't. Without one it returns
// the engine, unless texts of the store are archived.
func withArchive(ctx context.Context, engine Engine, c config.Store, t config.Tuning, logger *slog.Logger,
	readOnly bool) (_ Engine, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, engine.Close())
		}
	}()
	if c.Archive == "" {
		begun, err := archive.Begun(ctx, engine)
		switch {
		case err == nil && begun:
			err = errNoArchive
		case err == nil && !readOnly:
			err = archive.Forget(ctx, engine)
		}
		return engine, err
	}
	kept, err := objects.New(c.Archive, objects.Options{Getenv: os.Getenv})
	if err != nil {
		return nil, err
	}
	o := archive.Options{Objects: kept, Check: checkEnvelope, ReadOnly: readOnly,
		After: time.Duration(t.ArchiveAfterDays) * 24 * time.Hour, CacheBytes: int64(t.ArchiveCacheMiB) << 20,
		Logger: telemetry.WithoutRepeats(logger)}
	archived, err := openArchive(ctx, engine, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Archive, err)
	}
	return archived, nil
}

// openArchive makes the archive's engine. An object store that is away is no reason to stop: appends do not need it.
func openArchive(ctx context.Context, engine Engine, o archive.Options) (archived Engine, err error) {
	var made *archive.Engine
	switch e := engine.(type) {
	case *pebblestore.Engine:
		o.Engine = e
		made, err = archive.New(o)
		archived = embeddedWithArchive{made, e}
	case *pgstore.Engine:
		o.Engine = e
		made, err = archive.New(o)
		archived = databaseWithArchive{made, e}
	default:
		err = errors.New("this engine can't have an archive")
	}
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, archiveTime)
	defer cancel()
	err = made.CheckOwner(asking)
	if errors.Is(err, storage.ErrUnavailable) && !errors.Is(err, storage.ErrReadOnly) {
		o.Logger.Error("the archive can't be reached: texts of archived events can't be read until it can", "err", err)
		err = nil
	}
	return archived, err
}

// checkEnvelope reports how an envelope differs from the one that its record names.
func checkEnvelope(record, envelope []byte) error {
	r, err := event.ParseRecord(record)
	if err != nil {
		return fmt.Errorf("read the record: %w", err)
	}
	e, err := event.Parse(envelope, event.Options{Server: true, MaxBytes: len(envelope) + 1,
		Organization: r.OrganizationID})
	switch {
	case err != nil:
		return fmt.Errorf("read the envelope: %w", err)
	case e.Digest != r.EventDigest || e.SignatureB64 != r.SigValueB64:
		return errors.New("the record names another envelope")
	}
	return nil
}

// embeddedWithArchive is the embedded engine with an archive.
type embeddedWithArchive struct {
	*archive.Engine
	inner *pebblestore.Engine
}

func (e embeddedWithArchive) Collector() prometheus.Collector {
	return collectors(append(e.Metrics(), e.inner.Collector()))
}

// Compact implements backup.CompactionStore. No object has an envelope that was erased before, either.
func (e embeddedWithArchive) Compact(ctx context.Context) error {
	return errors.Join(e.RewriteAll(ctx), e.inner.Compact(ctx))
}

// WatchKinds is that of the embedded engine, which has all records.
func (e embeddedWithArchive) WatchKinds(kinds ...storage.Kind) func() uint64 {
	return e.inner.WatchKinds(kinds...)
}

// Erasures implements backup.CompactionStore.
func (e embeddedWithArchive) Erasures() uint64 { return e.inner.Erasures() }

// Snapshot makes a snapshot, which has no objects.
func (e embeddedWithArchive) Snapshot(ctx context.Context, dir string) error {
	return e.inner.Snapshot(ctx, dir)
}

// databaseWithArchive is the engine of PostgreSQL with an archive.
type databaseWithArchive struct {
	*archive.Engine
	inner *pgstore.Engine
}

func (e databaseWithArchive) Collector() prometheus.Collector {
	return collectors(append(e.Metrics(), e.inner.Collector()))
}

// Synchronous is that of the database.
func (e databaseWithArchive) Synchronous() bool { return e.inner.Synchronous() }

// Schema is that of the database.
func (e databaseWithArchive) Schema() int64 { return e.inner.Schema() }

// Transact is that of the database.
func (e databaseWithArchive) Transact(ctx context.Context, work func(pgx.Tx) error) error {
	return e.inner.Transact(ctx, work)
}

// Send is that of the database.
func (e databaseWithArchive) Send(ctx context.Context, statements *pgx.Batch) error {
	return e.inner.Send(ctx, statements)
}

// Survey is that of the database, because an archive moves no heads and no records.
func (e databaseWithArchive) Survey(ctx context.Context, q storage.SurveyQuestion) iter.Seq2[storage.SurveyedLedger, error] {
	return e.inner.Survey(ctx, q)
}

// collectors are several as one.
type collectors []prometheus.Collector

// Describe implements prometheus.Collector.
func (c collectors) Describe(out chan<- *prometheus.Desc) {
	for _, each := range c {
		each.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (c collectors) Collect(out chan<- prometheus.Metric) {
	for _, each := range c {
		each.Collect(out)
	}
}

// archiver is an engine with an archive.
type archiver interface {
	Run(ctx context.Context)
	ErasuresWaiting(ctx context.Context, t id.Tenant) (bool, error)
}

// RunArchive archives old events until ctx ends. It returns at once for a store without an archive.
func (s *Store) RunArchive(ctx context.Context) {
	if a, is := s.Engine.(archiver); is {
		a.Run(ctx)
	}
}

// ErasuresWaiting reports whether an archive may still hold an envelope of a tenant that was erased before the call.
func (s *Store) ErasuresWaiting(ctx context.Context, t id.Tenant) (bool, error) {
	if a, is := s.Engine.(archiver); is {
		return a.ErasuresWaiting(ctx, t)
	}
	return false, nil
}
