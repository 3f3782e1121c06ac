// Package log stores the events of each organization in a ledger: an append-only log with a hash chain, a Merkle tree and
// signed checkpoints. It owns the log keys and is the only writer of ledger data. It hides from callers how ledgers share
// appends, are cached, fail, are repaired, and move between nodes.
//
// An append passes through these states, each in the file of that name:
//
//	Append -> prepared -> waiting -> sequenced -> in flight -> durable -> published -> answered
//	          append.go   queue.go   sequencer.go     |        finish.go
//	              ^          |           |            |
//	              +-- stale -+-----------+            v  not applied, or outcome unknown
//	                                               blocked -> repaired -> answered, or waiting again
//	                                                          repair.go
//
// A submission is stale if the organization was reconfigured, or its ledger left memory, after it was prepared.
//
// Append runs in the caller's goroutine: it prepares a submission from the published state and queues it. One sequencer
// takes the waiting submissions of all organizations, refuses events beyond the monthly limit (Attestation.Cap), numbers the
// others, and hands one batch per ledger to the engine.
// One finisher per stream of the engine waits until the batches are durable, publishes the new states and answers the
// submissions. A checkpoint is signed (keys.go) when it is first requested from a published state (state.go).
//
// Invariants:
//
//   - Nothing leaves the process before the append it depends on is durable: readers see published states only, and a
//     state is published after its append was awaited.
//   - A submission is stored whole or not at all, and only under the config version that it was prepared for.
//   - The entry at index i links to the event hash of the entry at i-1, and received_at never decreases, except by an
//     event of the server that states it (ClockKind).
//   - A ledger whose head does not extend its anchor, or in which damage was found, is frozen: it can be read, shows its
//     fault, and is never written again. Nothing is signed except the anchor and trees that extend it.
//   - An idle ledger has no goroutine, channel or timer, and may be dropped from memory and loaded again.
//   - With Options.Owned, a ledger is taken over before its head is read (package takeover), and nothing is appended to
//     it after it was released.
//   - A failed sync ends the process (Options.Fatal). It is never retried.
package log

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
)

// Store is the storage engine of the ledgers.
type Store interface {
	storage.Ledgers
	storage.RecordStore
}

// Options configure Open. Store, Keyring and Anchors are required.
type Options struct {
	Store   Store
	Keyring *seal.Keyring  // seals and opens log keys
	Anchors *anchor.Folder // Open takes ownership

	Logger  *slog.Logger          // default: discards
	Metrics prometheus.Registerer // default: none
	Tracer  telemetry.Tracer      // default: off
	Clock   func() time.Time      // default: time.Now

	// Held returns an error for callers of Append if no event may be given a time now. Default: always nil.
	Held func() error

	// ReadOnly rejects all appends with an error that wraps storage.ErrReadOnly. Reads work as usual.
	ReadOnly bool

	// Anchored shows each ledger as of its anchor. It is for a ReadOnly store on a file system that may show writes
	// that it never made durable. The anchor may be up to a second older than the heads that were shown before.
	Anchored bool

	// Fatal is called once, from a goroutine of the package, if the engine is broken. It should end the process.
	// Default: panic.
	Fatal func(error)

	// AnchorFirst reports whether an event is acknowledged, and a head shown, only after its anchor is written. A
	// store that may lose acknowledged events needs this. Otherwise anchors are written within a second. AnchorFirst
	// is called concurrently, for each append. Default: false.
	AnchorFirst func() bool

	// Witness is consulted before the first append to a ledger after it was loaded, unless the ledger is empty.
	// Default: none.
	Witness Witness

	// Importing is set by the command that imports ledgers: ledgers that are being imported accept the import's events,
	// and their anchors are written when the import ends.
	Importing bool

	// Owned reports whether the process may begin work for a ledger now. It is for processes that share the store, and
	// is called concurrently, for each operation. Operations on other ledgers return ErrNotOwner. After a ledger is no
	// longer owned, the caller must call Release before Owned returns true again. Default: the store is not shared.
	Owned func(id.Tenant) bool

	// Elapsed is a monotonic clock that continues while the machine is suspended. Default: Go's, which may stop then.
	Elapsed func() time.Duration

	// FirstAnchor is called with the checkpoint of an empty ledger before its first event is appended. It returns when
	// another process that shares the store has stored it as an anchor too. If it fails, the ledger can't be loaded.
	// Default: none.
	FirstAnchor func(ctx context.Context, checkpoint []byte) error

	// FetchAnchors is called for a ledger that has events and no anchor. It returns when the anchors of all processes
	// that share the store have been received (ReceiveAnchors). Default: there are no other processes.
	FetchAnchors func(context.Context) error

	// Shared reports whether several organizations are sending to the server at the moment. An organization then has one
	// turn per append and one append in flight. The ledgers detect this on their own once several ledgers take events.
	// Shared is called concurrently. Default: always false.
	Shared func() bool

	// MaxWaiting bounds the waiting events of all organizations. Beyond it, an organization may queue events only if none
	// of its own are waiting. Events for a stream of the store that is full are counted separately. Default: 16,384.
	MaxWaiting int

	MaxWaitingTenant int   // waiting events of one organization; default 4,096
	MaxResident      int   // idle ledgers kept in memory, about 2 KiB each; default 20,000
	TileCacheBytes   int64 // decoded tiles cached for proofs, about 2 KiB per 256 events; default 128 MiB
	LeafCacheBytes   int64 // leaf hashes cached for proofs, about 8 KiB per 256 events; default 128 MiB
}

func (o Options) withDefaults() Options {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Elapsed == nil {
		began := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(began) }
	}
	if o.Held == nil {
		o.Held = func() error { return nil }
	}
	if o.Shared == nil {
		o.Shared = reportsNever
	}
	if o.AnchorFirst == nil {
		o.AnchorFirst = reportsNever
	}
	if o.Fatal == nil {
		o.Fatal = func(err error) { panic(err) }
	}
	o.MaxWaiting = valueOrDefault(o.MaxWaiting, 16_384)
	o.MaxWaitingTenant = valueOrDefault(o.MaxWaitingTenant, 4_096)
	o.MaxResident = valueOrDefault(o.MaxResident, 20_000)
	o.TileCacheBytes = valueOrDefault(o.TileCacheBytes, 128<<20)
	o.LeafCacheBytes = valueOrDefault(o.LeafCacheBytes, 128<<20)
	return o
}

func valueOrDefault[T int | int64](v, d T) T {
	if v == 0 {
		return d
	}
	return v
}

func reportsNever() bool { return false }

// Ledgers are the ledgers of one store. Methods may be called concurrently.
type Ledgers struct {
	store    Store
	keyring  *seal.Keyring
	anchors  *anchor.Folder
	logger   *slog.Logger
	metrics  *commitMetrics
	tracer   telemetry.Tracer
	clock    func() time.Time
	held     func() error
	ahead    aheadLedgers
	fences   *takeover.Fences // nil: the store is not shared
	readOnly bool
	anchored bool // Options.Anchored
	fatal    func(error)
	tiles    *tileReader

	importing    bool
	anchorsFirst func() bool                         // Options.AnchorFirst
	witness      Witness                             // nil: none
	firstAnchor  func(context.Context, []byte) error // nil: the store is not shared
	fetchAnchors func(context.Context) error         // nil: the store is not shared
	uncompared   takeover.Uncompared

	maxWaiting, maxWaitingTenant, maxResident int

	renewal time.Duration // how long a reader waits for a retired ledger to be loaded again

	slotsMu sync.RWMutex
	slots   map[id.Tenant]*cacheSlot
	ending  map[id.Tenant]*ledger // released ledgers that may have work in flight; nil until the first

	moves    moveFollowers // notified of newly published states
	relisted moveFollowers // notified of changes of Listing

	queue   queue
	repairs chan struct{}  // a semaphore with maxRepairs slots
	done    sync.WaitGroup // sequencer, finishers, repairs, anchor writer
	stop    context.CancelFunc
}

// Open starts the ledgers of a store. It passes a barrier of the store first, so that no head is signed that is visible
// but not durable.
func Open(ctx context.Context, o Options) (*Ledgers, error) {
	o = o.withDefaults()
	if err := o.Store.Barrier(ctx); err != nil {
		return nil, fmt.Errorf("open ledgers: barrier: %w", err)
	}
	if !o.Importing { // an imported ledger may have anchors of its old store
		if err := refuseForeignStore(ctx, o); err != nil {
			return nil, fmt.Errorf("open ledgers: %w", err)
		}
	}
	l := newLedgers(o)
	for _, problem := range o.Anchors.Problems() {
		l.logger.Error("anchors damaged", "problem", problem)
	}
	if problem := o.Anchors.MissingNames(); problem != "" {
		l.logger.Error("names missing", "problem", problem)
	}
	background, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.done.Go(l.runSequencer)
	l.done.Go(func() { l.anchors.Run(background, telemetry.WithoutRepeats(l.logger)) })
	return l, nil
}

// refuseForeignStore returns an error if there are anchors but the store has no ledger: the store was lost or is another
// one, because a ledger gets its anchor after it is stored.
func refuseForeignStore(ctx context.Context, o Options) error {
	if !o.Anchors.HasAny() {
		return nil
	}
	for _, err := range o.Store.Tenants(ctx) {
		return err
	}
	return errors.New("there are anchors, but the store has no ledger: restore the store, or use another anchor folder for a new store")
}

// newLedgers returns ledgers without starting their goroutines.
func newLedgers(o Options) *Ledgers {
	l := &Ledgers{
		store: o.Store, keyring: o.Keyring, anchors: o.Anchors, logger: o.Logger,
		metrics: newCommitMetrics(o.Metrics, string(Suspect), string(ReadOnly), string(Frozen)), tracer: o.Tracer, clock: o.Clock, held: o.Held, readOnly: o.ReadOnly, anchored: o.Anchored, fatal: o.Fatal,
		tiles:        newTileReader(o.Store, tileOptions{NodeBytes: o.TileCacheBytes, LeafBytes: o.LeafCacheBytes, Metrics: o.Metrics}),
		importing:    o.Importing,
		anchorsFirst: o.AnchorFirst,
		witness:      o.Witness,
		firstAnchor:  o.FirstAnchor, fetchAnchors: o.FetchAnchors,
		maxWaiting: o.MaxWaiting, maxWaitingTenant: o.MaxWaitingTenant, maxResident: o.MaxResident,
		fences:  takeover.NewFences(o.Store, o.Owned),
		slots:   make(map[id.Tenant]*cacheSlot),
		repairs: make(chan struct{}, maxRepairs),
		renewal: patience,
	}
	l.queue.setUp(o.Shared, o.Store.Stream, o.Elapsed)
	l.registerGauges(o.Metrics)
	return l
}

// Close rejects new submissions, waits until the queued ones are durable, and writes the anchors. It does not close the
// store.
func (l *Ledgers) Close() error { return l.Shutdown(context.Background()) }

// Shutdown is like Close, but stops waiting when ctx ends and returns an error that describes the appends in flight.
// Appends are never cancelled: the next start finds out whether they were stored. The anchors are written in any case.
func (l *Ledgers) Shutdown(ctx context.Context) error {
	l.queue.closeQueue()
	l.stop()
	err := syncs.Within(ctx, func() error { l.done.Wait(); return nil })
	if err != nil {
		err = fmt.Errorf("close ledgers: %s: %w", l.queue.describeWork(), err)
	}
	return errors.Join(err, l.anchors.Close())
}

// checkWritable returns an error if no ledger accepts appends now.
func (l *Ledgers) checkWritable() error {
	if l.readOnly {
		return storage.ErrReadOnly
	}
	return l.held()
}

// errStopped is returned for submissions while the process stops.
var errStopped = &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: "The service is stopping", RetryAfter: time.Second}

func overloaded(message string) error {
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: message, RetryAfter: time.Second}
}

// unavailable is the error of a submission of which nothing was stored.
func unavailable(cause error) error {
	if errors.Is(cause, storage.ErrReadOnly) { // more specific
		return fmt.Errorf("append: %w", cause)
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The store does not take events at the moment", RetryAfter: time.Second,
		Err: fmt.Errorf("append: %w", cause)}
}

func outcomeUnknown(cause error) error {
	return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", RetryAfter: time.Second, Err: cause,
		Message: "The event may be stored; retry with the same event_id"}
}

// storeError maps an error of the engine to the error for callers.
func storeError(step string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", step, err)
	var classified *fault.Error
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return fault.Wrap(fault.NotFound, "Not found", err)
	case errors.As(err, &classified): // it has a message for the client already
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The store can't be reached", Err: err}
	}
	return fault.Wrap(fault.Internal, "Internal error", err)
}
