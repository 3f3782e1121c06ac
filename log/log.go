// Package log is the ledgers: one append-only log for each organization, with its hash chain, its Merkle tree and its
// signed checkpoints. It owns the log keys and is the only writer of ledger data.
//
// One event's way: Append (in the caller's goroutine) prepares a submission and queues it; the sequencer takes the
// waiting submissions of all organizations, gives numbers, builds records, entries, tiles and heads, and hands one
// batch to the engine; the finisher waits until it is durable, publishes the new state of each ledger and releases
// the waiters.
//
// Invariants:
//
//   - Nothing leaves the process before the append under it is durable: readers
//     see published states only, and those move after Wait alone.
//   - A submission lands whole or not at all, and only under the config version
//     that it was prepared under.
//   - The entry at index i names the event hash of the entry at i-1, and
//     received_at never falls.
//   - A ledger whose head does not extend its anchor, or in which a fault was
//     found, is frozen: it is read, marked, and never written again. Nothing is
//     signed that is not the anchor or extends it.
//   - An idle ledger has no goroutine, channel or timer, and its state can be
//     dropped and read back.
//   - With Options.Owned, a ledger is taken over before its head is read (package takeover), and nothing is
//     appended to it after it was released.
//   - A failed sync ends the process (Options.Fatal); it is never retried.
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

// Store is the engine of the ledgers.
type Store interface {
	storage.Ledgers
	storage.RecordStore
}

// Options configure Open. Store, Keyring and Anchors are required.
type Options struct {
	Store   Store
	Keyring *seal.Keyring  // opens and seals log keys
	Anchors *anchor.Folder // owned by the caller until Open, by Ledgers after it

	Logger  *slog.Logger          // default: discards
	Metrics prometheus.Registerer // default: none
	Tracer  telemetry.Tracer      // default: off
	Clock   func() time.Time      // default: time.Now

	// Held returns why no event may be given a time now, as an error for the caller of
	// Append; nil when it may. Default: always nil.
	Held func() error

	// ReadOnly says that nothing is appended; Append then wraps storage.ErrReadOnly.
	// Configuration and events are read as ever.
	ReadOnly bool

	// Anchored shows each ledger as it was at its anchor, and nothing beyond. It is for a
	// ReadOnly store on a file system that may show writes which it never made durable.
	// The anchor lags by up to a second behind the heads that were shown before.
	Anchored bool

	// Fatal is called once, in a goroutine of the package, when the engine is
	// broken; it should end the process. Default: panic.
	Fatal func(error)

	// AnchorFirst reports whether an event is acknowledged, and a head shown, only after its anchor is written. A
	// store that may lose acknowledged events needs it. Else anchors lie up to a second behind. It is asked for each
	// append, concurrently. Default: false.
	AnchorFirst func() bool

	// Witness is asked before the first event that a ledger takes after it was read from the
	// store. A ledger without events is not asked about. Default: none.
	Witness Witness

	// Importing is for the command that imports ledgers: those that are on their way here take the import's events,
	// and no anchors are written before they have arrived.
	Importing bool

	// Owned reports whether the process may begin work for a ledger now, for processes that share the store. It is asked
	// for each call, concurrently. All other ledgers answer ErrNotOwner. When it says no to a ledger for good, the
	// caller MUST call Release before it says yes again. Default: the store is not shared, and all ledgers are owned.
	Owned func(id.Tenant) bool

	// Elapsed is a steady clock that goes on while the machine sleeps. Default: Go's, which may stand still then.
	Elapsed func() time.Duration

	// FirstAnchor is called with the checkpoint of an empty ledger before it takes its first event. It returns when
	// another process that shares the store has it as an anchor too. An error is one of the ledger. Default: none.
	FirstAnchor func(ctx context.Context, checkpoint []byte) error

	// FetchAnchors is called for a ledger with events and without an anchor. It returns when all anchors of other
	// processes that share the store are here (ReceiveAnchors). Default: there are no others.
	FetchAnchors func(context.Context) error

	// Shared reports whether senders of several organizations use the server at the moment. Then an organization has
	// one turn in an append, and one append under way. The ledgers notice by themselves when several ledgers take
	// events. It is asked concurrently. Default: never.
	Shared func() bool

	MaxWaiting       int   // events waiting in all, beyond which an organization has to wait for its own; those of streams of the store that are full are counted apart; default 16,384
	MaxWaitingTenant int   // events waiting of one organization; default 4,096
	MaxResident      int   // ledgers kept in memory when idle, about 2 KiB each; default 20,000
	TileCacheBytes   int64 // decoded tiles kept for proofs, about 2 KiB for 256 events; default 128 MiB
	LeafCacheBytes   int64 // leaf hashes kept for proofs, about 8 KiB for 256 events; default 128 MiB
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

// Ledgers is all ledgers of one store. Its methods may be called concurrently.
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
	anchored bool // see Options
	fatal    func(error)
	tiles    *tileReader

	importing    bool
	anchorsFirst func() bool                         // Options.AnchorFirst
	witness      Witness                             // nil: none
	firstAnchor  func(context.Context, []byte) error // nil: no process shares the store
	fetchAnchors func(context.Context) error         // the same
	uncompared   takeover.Uncompared

	maxWaiting, maxWaitingTenant, maxResident int

	renewal time.Duration // for which a reader waits for a dropped ledger to be read again

	slotsMu sync.RWMutex
	slots   map[id.Tenant]*cacheSlot
	ending  map[id.Tenant]*ledger // released ones that may have work under way; nil until the first

	moves    moveFollowers // of newly published states
	relisted moveFollowers // of changes of Listing

	queue   queue
	repairs chan struct{}  // one token for each repair at work
	done    sync.WaitGroup // sequencer, finishers, repairs, anchor writer
	stop    context.CancelFunc
}

// Open starts the ledgers of a store. It passes a barrier first, so that no
// head that was merely visible is ever signed.
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

// refuseForeignStore stops a start with anchors and a store in which there is not one ledger: the store is lost, or
// is another one. Every ledger has an anchor only after it is in the store.
func refuseForeignStore(ctx context.Context, o Options) error {
	if !o.Anchors.HasAny() {
		return nil
	}
	for _, err := range o.Store.Tenants(ctx) {
		return err
	}
	return errors.New("there are anchors, and the store has no ledger: bring the store back, or use another folder of anchors for a new one")
}

// newLedgers returns ledgers of which nothing runs yet.
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

// Close refuses new submissions, waits until the queued ones are durable, writes the
// anchors and returns. The store stays open.
func (l *Ledgers) Close() error { return l.Shutdown(context.Background()) }

// Shutdown is Close for a store that may hang. When ctx ends it waits no longer and
// returns an error that names the appends in flight. Appends are never cancelled; the next
// start finds their outcome. The anchors are written in any case.
func (l *Ledgers) Shutdown(ctx context.Context) error {
	l.queue.closeQueue()
	l.stop()
	err := syncs.Within(ctx, func() error { l.done.Wait(); return nil })
	if err != nil {
		err = fmt.Errorf("close ledgers: %s: %w", l.queue.describeWork(), err)
	}
	return errors.Join(err, l.anchors.Close())
}

// checkWritable returns why no ledger takes an append now, nil when ledgers may.
func (l *Ledgers) checkWritable() error {
	if l.readOnly {
		return storage.ErrReadOnly
	}
	return l.held()
}

// errStopped answers submissions that come while the process stops.
var errStopped = &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: "The service is stopping", RetryAfter: time.Second}

func overloaded(message string) error {
	return &fault.Error{Kind: fault.Overloaded, Code: "overloaded", Message: message, RetryAfter: time.Second}
}

// unavailable is the answer to a submission of which nothing was stored.
func unavailable(cause error) error {
	if errors.Is(cause, storage.ErrReadOnly) { // which says more
		return fmt.Errorf("append: %w", cause)
	}
	return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The store does not take events at the moment", RetryAfter: time.Second,
		Err: fmt.Errorf("append: %w", cause)}
}

func outcomeUnknown(cause error) error {
	return &fault.Error{Kind: fault.OutcomeUnknown, Code: "outcome_unknown", RetryAfter: time.Second, Err: cause,
		Message: "The event may be stored; retry with the same event_id"}
}

// storeError turns an error of the engine into one for the layers above.
func storeError(step string, err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w", step, err)
	var told *fault.Error
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return fault.Wrap(fault.NotFound, "Not found", err)
	case errors.As(err, &told): // the client's message is set already
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The store can't be reached", Err: err}
	}
	return fault.Wrap(fault.Internal, "Internal error", err)
}
