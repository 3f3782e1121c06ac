// Package audit reads stored ledgers again and checks that they are unchanged: in the
// background (Auditor), in a store without a writer (Fsck), and on the way to another store
// (Export, Import).
//
// Invariants:
//
//   - Everything is read from the store itself, below all caches.
//   - Each entry links to the one before, each record is the one that its entry commits to,
//     each envelope is the one that its record is about and is signed, each event id leads
//     to its event, and the tree that grows from the entries has the stored tiles, none
//     beyond them, and the root of the head.
//   - A new event's signature that this process has verified is not verified again: key, digest and signature are
//     compared with those that were. Whole passes, Fsck, Export and Import verify each signature.
//   - An envelope that is missing was erased by the event that the store names, that event says so, and
//     every envelope that such an event names is gone. The trace, tool and action kind of an erased event
//     are the operator's word.
//   - The counters of the months are compared when an examination began at the first event.
//   - The position of an Auditor never passes an event in which something is wrong.
//   - Memory does not grow with a ledger.
//
// Two things are the operator's word alone, because nothing else in the store repeats them:
// the event that an idempotency key is bound to, and the disclosure of an event.
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

	// Verified is the signatures that were verified as their events came. New events are not verified again as long
	// as it has theirs; whole passes verify all. Nil has none.
	Verified *keytable.Verified
}

// Auditor re-verifies ledgers while they take events. A fault that it finds marks the
// ledger.
type Auditor struct {
	ledgers *log.Ledgers
	store   log.Store
	clock   func() time.Time
	metrics *metrics
	logger  *slog.Logger // leaves repetitions out

	moved     *log.Moves
	in        *inspector // of whole passes
	inNew     *inspector // of new events
	backlog   backlog
	storing   sync.Mutex            // held from reading a position until it is written again
	lastRound atomic.Pointer[round] // nil before the end of the first one
}

// New returns an Auditor that begins with Run.
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

// passPosition is the position of a pass from the first event that has not ended.
type passPosition struct {
	To    id.Index   `json:"to"`
	Root  id.Hash    `json:"root"`
	Since id.Instant `json:"since"`
}

// MaxPassAge is how old the last whole pass over a ledger becomes before the next one
// begins at the first event.
const MaxPassAge = 24 * time.Hour

// How the time of an Auditor is spent. After each chunk it rests for so many times as long
// as it worked.
const (
	chunkEvents = 512 // events between two rests
	passRest    = 9   // a tenth of one core

	// Between these lags, in events, new events get more of a core: from a twentieth to a
	// tenth, which is 14,000 events a second whose signatures are known, and 5,000 of others.
	// More would be taken from a service that has no processor to spare, because then each
	// core is shared with requests.
	lagLow, lagHigh = 10_000, 30_000
	usualRest       = 19
	shortestRest    = 9
)

// restFactor returns for how many times as long as it worked the re-verification of new
// events rests, when so many events wait.
func restFactor(lag uint64) float64 {
	share := float64(min(max(lag, lagLow), lagHigh)-lagLow) / (lagHigh - lagLow)
	return usualRest - share*(usualRest-shortestRest)
}

// Run goes through all ledgers of the store again and again until ctx ends. It follows new
// events, and begins at the first event of a ledger once a day. A ledger with many new
// events is followed at once, the others after every. Whole passes take about a tenth of one
// core, new events a twentieth, and new events that wait up to a tenth.
//
// Where a look at all ledgers takes long, looks are further apart, so that they take a fiftieth of the time at most.
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

// RunOnce follows all new events, makes the whole passes that are due, and updates the
// metrics of a round.
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

// readPosition reads the position of a ledger. A record that is damaged counts as none.
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

// newExaminer returns an examiner of a published state whose findings mark the ledger. It
// stands at size. It stands at the first event if the stored events before size are others
// now: then a whole pass finds the fault.
func (a *Auditor) newExaminer(ctx context.Context, s *log.State, size id.Index, root id.Hash) (*examiner, error) {
	x := newExaminer(a.store, a.in, s.Identity(), s.Head(), func(f Finding) {
		if err := a.ledgers.MarkFault(ctx, f.Tenant, f.Level, f.Place+": "+f.Problem); err != nil {
			a.logger.Error("ledger fault not marked", "origin", f.Origin, "place", f.Place, "err", err)
		}
	})
	x.parts = allParts | storage.FieldLocal // a pass a day over all objects of an archive would cost more than it finds
	err := x.resumeBehind(ctx, size, root)
	if log.IsDamage(err) {
		a.logger.Error("re-verification begins anew", "origin", s.Identity().Origin, "position", size, "err", err)
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("re-verify: %w", err)
	}
	return x, err
}

// advanceSlowly examines the events up to end, or as far as ctx lets it, with rests.
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
