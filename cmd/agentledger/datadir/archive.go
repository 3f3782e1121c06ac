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

// errNoArchive is returned if texts of the store are in an archive that the settings do not name.
var errNoArchive = errors.New("texts of this store are in an archive: set --archive")

// archiveTime bounds the first request to the object store, so that one that hangs does not delay a start for long.
const archiveTime = 10 * time.Second

// withArchive adds the archive of the settings to an engine. If it returns an error, it has closed the engine. If the
// settings name no archive, it returns the engine, or an error if texts of the store are archived.
func withArchive(ctx context.Context, engine Engine, c config.Store, t config.Tuning, logger *slog.Logger,
	readOnly bool) (_ Engine, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, engine.Close())
		}
	}()
	if c.Archive == "" {
		started, err := archive.Begun(ctx, engine)
		switch {
		case err == nil && started:
			err = errNoArchive
		case err == nil && !readOnly:
			err = archive.Forget(ctx, engine)
		}
		return engine, err
	}
	store, err := objects.New(c.Archive, objects.Options{Getenv: os.Getenv})
	if err != nil {
		return nil, fmt.Errorf("--archive: %w", err)
	}
	o := archive.Options{Objects: store, Check: checkEnvelope, ReadOnly: readOnly,
		After: time.Duration(t.ArchiveAfterDays) * 24 * time.Hour, CacheBytes: int64(t.ArchiveCacheMiB) << 20,
		Logger: telemetry.WithoutRepeats(logger)}
	archived, err := openArchive(ctx, engine, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Archive, err)
	}
	return archived, nil
}

// openArchive opens the engine with the archive. It succeeds if the object store is unreachable, because appends do not
// need it.
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
		err = errors.New("this engine does not support an archive")
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

// checkEnvelope returns an error if an envelope is not the one that its record names.
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

// Compact implements backup.CompactionStore. When it returns, no object contains an envelope that was erased before the
// call.
func (e embeddedWithArchive) Compact(ctx context.Context) error {
	return errors.Join(e.RewriteAll(ctx), e.inner.Compact(ctx))
}

// WatchKinds calls the embedded engine, which has all records.
func (e embeddedWithArchive) WatchKinds(kinds ...storage.Kind) func() uint64 {
	return e.inner.WatchKinds(kinds...)
}

// Erasures implements backup.CompactionStore.
func (e embeddedWithArchive) Erasures() uint64 { return e.inner.Erasures() }

// Snapshot makes a snapshot, which contains no objects.
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

// Synchronous calls the database's method.
func (e databaseWithArchive) Synchronous() bool { return e.inner.Synchronous() }

// Schema calls the database's method.
func (e databaseWithArchive) Schema() int64 { return e.inner.Schema() }

// Transact calls the database's method.
func (e databaseWithArchive) Transact(ctx context.Context, work func(pgx.Tx) error) error {
	return e.inner.Transact(ctx, work)
}

// Send calls the database's method.
func (e databaseWithArchive) Send(ctx context.Context, statements *pgx.Batch) error {
	return e.inner.Send(ctx, statements)
}

// Survey calls the database's method, because an archive moves neither heads nor records.
func (e databaseWithArchive) Survey(ctx context.Context, q storage.SurveyQuestion) iter.Seq2[storage.SurveyedLedger, error] {
	return e.inner.Survey(ctx, q)
}

// collectors combines several collectors.
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

// RunArchive archives old events until ctx ends. It returns at once if the store has no archive.
func (s *Store) RunArchive(ctx context.Context) {
	if a, is := s.Engine.(archiver); is {
		a.Run(ctx)
	}
}

// ErasuresWaiting reports whether an archive may still contain an envelope of a tenant that was erased before the call.
func (s *Store) ErasuresWaiting(ctx context.Context, t id.Tenant) (bool, error) {
	if a, is := s.Engine.(archiver); is {
		return a.ErasuresWaiting(ctx, t)
	}
	return false, nil
}
