package log

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/internal/wait"
	"github.com/agentledger/agentledger/storage"
)

// kindReverified is the record of how far a ledger has been re-verified.
const kindReverified storage.Kind = "ledger_reverified"

// Reverified says how far a ledger has been re-verified from the store itself.
type Reverified struct {
	To    id.Index   `json:"to"`    // the events [0, To) were found in order
	Root  id.Hash    `json:"root"`  // of the tree at To
	At    id.Instant `json:"at"`    // when To was reached
	Since id.Instant `json:"since"` // when the first event was last looked at
}

// Reverified returns how far the ledger has been re-verified; the zero value
// when it never was.
func (l *Ledgers) Reverified(ctx context.Context, t id.Tenant) (Reverified, error) {
	var v Reverified
	err := l.ownRecord(ctx, t, kindReverified, &v)
	if errors.Is(err, storage.ErrNotFound) {
		return Reverified{}, nil
	}
	return v, storeError("read re-verification", err)
}

// reverifyRecord is what is on record of a ledger's re-verification.
type reverifyRecord struct {
	Reverified
	Pass passed `json:"pass,omitzero"`
}

// passed is how far a pass from the first event is that has not ended.
type passed struct {
	To    id.Index   `json:"to"`
	Root  id.Hash    `json:"root"`
	Since id.Instant `json:"since"`
}

// How the background re-verification spends its time.
const (
	reverifyChunk = 512            // events checked before a rest
	reverifyFresh = 24 * time.Hour // how old a whole pass may be before the next begins at the first event
	reverifyIdle  = 9              // rest for so many times as long as was worked: a tenth of one core

	// Between these lags, in events, new events get more of a core: from a tenth to a
	// fifth, which is 2,000 events a second. More would be taken from a service that has
	// no processor to spare, because then each core is shared with requests.
	lagLow, lagHigh = 10_000, 50_000
	reverifyBusy    = 4
)

// restAt is for how many times as long as it worked the re-verification of new events
// rests, when so many wait.
func restAt(lag uint64) float64 {
	share := float64(min(max(lag, lagLow), lagHigh)-lagLow) / (lagHigh - lagLow)
	return reverifyIdle - share*(reverifyIdle-reverifyBusy)
}

// Reverify goes through all ledgers of the store again and again until ctx ends: it
// follows what is new, and begins at the first event of a ledger once a day. Ledgers in
// which many events are new are followed at once, others after every. It takes about
// a tenth of one core for each of both, and up to a fifth for new events that wait.
func (l *Ledgers) Reverify(ctx context.Context, every time.Duration) {
	r := l.newReverification()
	var passes sync.WaitGroup
	defer passes.Wait()
	passes.Go(func() {
		for ctx.Err() == nil {
			r.tell(ctx, r.passAll(ctx))
			_ = wait.For(ctx, every)
		}
	})
	r.follow(ctx, every)
}

// reverification is one run of Reverify.
type reverification struct {
	*Ledgers
	moved   *Moves
	in      *inspector
	errors  *slog.Logger // leaves repetitions out
	storing sync.Mutex   // held from reading a record until it is written again
}

func (l *Ledgers) newReverification() *reverification {
	return &reverification{Ledgers: l, moved: l.Moves(), in: newInspector(1), errors: telemetry.WithoutRepeats(l.logger)}
}

// tell logs what kept the re-verification from going on.
func (r *reverification) tell(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		r.errors.Error("re-verification stopped early", "err", err)
	}
}

// record reads what is on record of a ledger; of a record that can't be read, nothing.
func (r *reverification) record(ctx context.Context, t id.Tenant) (done reverifyRecord, err error) {
	err = r.ownRecord(ctx, t, kindReverified, &done)
	if isDamage(err) {
		return reverifyRecord{}, nil
	}
	return done, storeError("read re-verification", err)
}

// write changes what is on record of a ledger.
func (r *reverification) write(ctx context.Context, t id.Tenant, change func(*reverifyRecord)) error {
	r.storing.Lock()
	defer r.storing.Unlock()
	ctx = context.WithoutCancel(ctx)
	done, err := r.record(ctx, t)
	if err != nil {
		return err
	}
	change(&done)
	value, err := json.Marshal(done)
	if err != nil {
		return fmt.Errorf("store re-verification: %w", err)
	}
	changes := []storage.Change{{Kind: kindReverified, Value: value, If: storage.AnyVersion}}
	return storeError("store re-verification", r.store.Write(ctx, t, changes))
}

// examiner returns an examiner of a published state whose findings mark the ledger. It
// stands at size, or at the first event if what lies before size is not what was found
// there: a whole pass tells what is wrong.
func (r *reverification) examiner(ctx context.Context, led *ledger, s *State, size id.Index, root id.Hash) (x *examiner, err error) {
	x = newExaminer(r.store, r.in, s.identity, s.head, func(f Finding) {
		r.mark(ctx, led, f.Level, f.Place+": "+f.Problem)
	})
	err = x.resume(ctx, size, root)
	if isDamage(err) {
		r.errors.Error("re-verification begins anew", "origin", s.identity.Origin, "position", size, "err", err)
		err = nil
	}
	return x, storeError("re-verify", err)
}

// work goes up to end, or as far as ctx lets it, with rests.
func (r *reverification) work(ctx context.Context, x *examiner, end id.Index, rest func() float64) error {
	for x.tree.Size() < end && ctx.Err() == nil {
		began, before := r.clock(), x.tree.Size()
		if err := x.advance(ctx, min(before+reverifyChunk, end)); err != nil {
			return err
		}
		r.metrics.verified.Add(float64(x.tree.Size() - before))
		_ = wait.For(ctx, time.Duration(rest()*float64(r.clock().Sub(began))))
	}
	return nil
}
