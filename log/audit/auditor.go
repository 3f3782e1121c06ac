// Package audit reads stored ledgers again and verifies that they are unchanged: in the background (Auditor), in a store
// without a writer (Fsck), and while they are copied to another store (Export, Import). It hides how events are read ahead,
// verified in parallel and accounted for in order.
//
// Invariants:
//
//   - Everything is read from the store itself, below all caches.
//   - Each entry links to the previous one, each record matches its entry, each envelope matches its record and is signed,
//     each event ID leads to its event, and the tree over the entries has the stored tiles, none beyond them, and the root
//     of the head.
//   - The signature of a new event is not verified again if this process has verified the same key, digest and signature
//     before. Whole passes, Fsck, Export and Import verify every signature.
//   - A missing envelope was erased by the event that the store names, that event states the erasure, and every envelope
//     that such an event names is gone. Trace, tool and action kind of an erased event are unverified operator claims.
//   - The counters of the months are compared if an examination began at the first event.
//   - The position of an Auditor never passes an event in which something is wrong.
//   - Memory does not grow with the size of a ledger.
//
// Two things are unverified operator claims, because nothing else in the store repeats them: which event an idempotency key
// belongs to, and the disclosure of an event.
package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/keytable"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Options configure New. Ledgers and Store are required.
type Options struct {
	Ledgers *log.Ledgers
	Store   log.Store // the store of the ledgers

	Logger  *slog.Logger          // default: discards
	Metrics prometheus.Registerer // default: none
	Clock   func() time.Time      // default: time.Now

	// Verified contains the signatures that were verified when the events were received. If nil, the signatures of new
	// events are verified again.
	Verified *keytable.Verified
}

// Auditor re-verifies ledgers while they accept events. It marks ledgers in which it finds a fault.
type Auditor struct {
	ledgers *log.Ledgers
	store   log.Store
	clock   func() time.Time
	metrics *metrics
	logger  *slog.Logger // suppresses repetitions

	moved     *syncs.Inbox[id.Tenant]
	in        *inspector // of whole passes
	inNew     *inspector // of new events
	backlog   backlog
	storing   sync.Mutex            // held from reading a position until writing it
	lastRound atomic.Pointer[round] // nil before the first round has ended
}

// New returns an Auditor. Run starts it.
func New(o Options) *Auditor {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Metrics == nil {
		o.Metrics = prometheus.NewRegistry()
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	a := &Auditor{
		ledgers: o.Ledgers, store: o.Store, clock: o.Clock,
		metrics: newMetrics(o.Metrics), logger: telemetry.WithoutRepeats(o.Logger),
		moved: o.Ledgers.Moves(), in: newInspector(1),
	}
	a.inNew = a.in.withVerified(o.Verified)
	a.registerLag(o.Metrics)
	return a
}

// positionRecord is the stored position of the re-verification of a ledger.
type positionRecord struct {
	log.Reverified
	Pass passPosition `json:"pass,omitzero"`
}

// passPosition is the position of an unfinished pass that began at the first event.
type passPosition struct {
	To    id.Index   `json:"to"`
	Root  id.Hash    `json:"root"`
	Since id.Instant `json:"since"`
}

// MaxPassAge is the age of the last whole pass over a ledger at which the next one begins.
const MaxPassAge = 24 * time.Hour

// After each chunk an Auditor rests for a multiple of the time that it worked.
const (
	chunkEvents = 512 // events between two rests
	passRest    = 9   // a tenth of one core

	// Between these lags, in events, the share of one core for new events grows from a twentieth to a tenth. That is
	// 14,000 events per second with known signatures, and 5,000 others. A larger share would slow down requests on a
	// server whose processors are busy.
	lagLow, lagHigh = 10_000, 30_000
	usualRest       = 19
	shortestRest    = 9
)

// restFactor returns how many times as long as it worked the re-verification of new events rests if so many events
// wait.
func restFactor(lag uint64) float64 {
	share := float64(min(max(lag, lagLow), lagHigh)-lagLow) / (lagHigh - lagLow)
	return usualRest - share*(usualRest-shortestRest)
}

// Run re-verifies the ledgers of the store until ctx ends. It follows new events, and begins a whole pass over each
// ledger once a day. It follows a ledger with many new events immediately, and the others after every. Whole passes
// take about a tenth of one core, new events a twentieth, and up to a tenth if many of them wait.
//
// If listing all ledgers takes long, Run lists them less often, so that this takes at most a fiftieth of the time.
func (a *Auditor) Run(ctx context.Context, every time.Duration) {
	var passes sync.WaitGroup
	defer passes.Wait()
	passes.Go(func() {
		for ctx.Err() == nil {
			took, err := a.passAllLedgers(ctx)
			a.reportStop(ctx, err)
			_ = syncs.Sleep(ctx, max(every, lookRest*took))
		}
	})
	a.followMoves(ctx, every)
}

// RunOnce follows all new events, makes the whole passes that are due, and updates the metrics.
func (a *Auditor) RunOnce(ctx context.Context) error {
	err := a.inspectAll(ctx)
	for a.giveTurns(ctx, a.backlog.listDueLedgers(time.Now(), 0)) {
	}
	_, passErr := a.passAllLedgers(ctx)
	return errors.Join(err, passErr, a.inspectAll(ctx))
}

// reportStop logs an error that ended a round early.
func (a *Auditor) reportStop(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		a.logger.Error("re-verification stopped early", "err", err)
	}
}

// readPosition reads the position of a ledger. A damaged record counts as none.
func (a *Auditor) readPosition(ctx context.Context, t id.Tenant) (p positionRecord, err error) {
	p, err = readPosition(ctx, a.store, t)
	if log.IsDamage(err) {
		return positionRecord{}, nil
	}
	return p, err
}

func readPosition(ctx context.Context, store log.Store, t id.Tenant) (p positionRecord, err error) {
	r, err := store.Get(ctx, t, log.KindReverified, "")
	if err == nil {
		p, err = parsePosition(r.Value)
	}
	if err != nil {
		err = fmt.Errorf("read re-verification: %w", err)
	}
	return p, err
}

func parsePosition(value []byte) (p positionRecord, err error) {
	if err := json.Unmarshal(value, &p); err != nil {
		return positionRecord{}, fmt.Errorf("%w: %s: %w", storage.ErrCorrupt, log.KindReverified, err)
	}
	return p, nil
}

// changePosition changes the stored position of a ledger.
func (a *Auditor) changePosition(ctx context.Context, t id.Tenant, change func(*positionRecord)) error {
	a.storing.Lock()
	defer a.storing.Unlock()
	ctx = context.WithoutCancel(ctx)
	p, err := a.readPosition(ctx, t)
	if err != nil {
		return err
	}
	change(&p)
	value, err := json.Marshal(p)
	if err == nil {
		err = a.store.Write(ctx, t, []storage.Change{{Kind: log.KindReverified, Value: value, If: storage.AnyVersion}})
	}
	if err != nil {
		return fmt.Errorf("store re-verification: %w", err)
	}
	return nil
}

// newExaminer returns an examiner of a published state that marks the ledger if it finds a fault. It continues at size,
// or begins at the first event if the stored events before size have changed: then a whole pass finds the fault.
func (a *Auditor) newExaminer(ctx context.Context, s *log.State, size id.Index, root id.Hash) (*examiner, error) {
	x := newExaminer(a.store, a.in, s.Identity(), s.Head(), func(f Finding) {
		if err := a.ledgers.MarkFault(ctx, f.Tenant, f.Level, f.Place+": "+f.Problem); err != nil {
			a.logger.Error("ledger fault not marked", "origin", f.Origin, "place", f.Place, "err", err)
		}
	})
	x.parts = allParts | storage.FieldLocal // reading all objects of an archive once a day would cost more than it finds
	err := x.resumeBehind(ctx, size, root)
	if log.IsDamage(err) {
		a.logger.Error("re-verification starts over", "origin", s.Identity().Origin, "position", size, "err", err)
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("re-verify: %w", err)
	}
	return x, err
}

// advanceSlowly examines the events up to end, with rests, unless ctx ends first.
func (a *Auditor) advanceSlowly(ctx context.Context, x *examiner, end id.Index, rest func() float64) error {
	for x.tree.Size() < end && !x.stopped && ctx.Err() == nil {
		began, before := a.clock(), x.tree.Size()
		if err := x.advanceTo(ctx, min(before+chunkEvents, end)); err != nil {
			return err
		}
		a.metrics.verified.Add(float64(x.tree.Size() - before))
		_ = syncs.Sleep(ctx, time.Duration(rest()*float64(a.clock().Sub(began))))
	}
	return nil
}
