package log

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// Export reads one ledger of a store that has no writer, in order, and
// re-verifies all of it on the way as Fsck does. What it yields is whole: the
// first thing that is not ends it with ErrDamaged and the place.
type Export struct {
	ledgers *Ledgers
	state   *State
	x       *examiner
	found   *Finding
	keys    keyWindow
	ended   bool
}

// ErrNotHere is wrapped by what refuses to copy a ledger that has not arrived
// in this store yet.
var ErrNotHere = errors.New("its import has not ended here")

// OpenExport compares what is stored of a ledger with itself and with its
// anchor. Of o only Store, Keyring, Anchors and Logger count; they stay the
// caller's. A ledger that nothing confirms is not copied.
func OpenExport(ctx context.Context, o Options, t id.Tenant) (*Export, error) {
	if err := o.Store.Barrier(ctx); err != nil {
		return nil, fmt.Errorf("export: barrier: %w", err)
	}
	e := &Export{ledgers: newLedgers(o.withDefaults())}
	if err := e.open(ctx, t); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return e, nil
}

func (e *Export) open(ctx context.Context, t id.Tenant) error {
	identity, keys, err := e.ledgers.readIdentity(ctx, t)
	if err != nil {
		return err
	}
	known, err := e.ledgers.readFault(ctx, t)
	switch {
	case isDamage(err):
		return fmt.Errorf("%s: %w: fault record: %w", identity.Origin, ErrDamaged, err)
	case err != nil:
		return err
	case known.Level == Importing:
		return fmt.Errorf("%s: %w", identity.Origin, ErrNotHere)
	}
	level, err := e.ledgers.orSucceeded(ctx, t, known.Level)
	if err != nil {
		return err
	}
	switch level {
	case Healthy, Moved:
	case Succeeded:
		e.ended = true
	default:
		return fmt.Errorf("%s: %w: there is a fault on record: %s", identity.Origin, ErrDamaged, known.Reason)
	}
	e.state, err = e.ledgers.readState(ctx, newLedger(identity, keys))
	if isDamage(err) {
		err = fmt.Errorf("%s: %w: %w", identity.Origin, ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	e.x = newExaminer(e.ledgers.store, newInspector(runtime.GOMAXPROCS(0)), identity, e.state.head, e.report)
	copier, err := storage.CopierOf(e.ledgers.store)
	if err != nil {
		return err
	}
	e.keys = keyWindow{store: copier, tenant: t, size: e.state.Size()}
	return e.confirm(ctx)
}

// confirm refuses a ledger that does not extend what was shown of it, unless it is
// frozen and another one goes on in its place: then it is copied as it is, beside the
// checkpoint that it shows.
func (e *Export) confirm(ctx context.Context) error {
	if _, known := e.ledgers.anchors.Find(e.state.identity.Origin); !known && e.state.Size() == 0 {
		return nil
	}
	if err := e.ledgers.confirm(ctx, e.state); err != nil {
		return err
	}
	if f := e.state.fault; f.Level != Healthy && !e.ended {
		return fmt.Errorf("%s: %w: head: %s", e.state.identity.Origin, ErrDamaged, f.Reason)
	}
	return nil
}

func (e *Export) report(f Finding) {
	if e.found == nil {
		e.found = &f
	}
}

// damage returns what was found, if anything was.
func (e *Export) damage() error {
	if e.found == nil {
		return nil
	}
	return fmt.Errorf("%w: %v", ErrDamaged, *e.found)
}

// State returns the state that is copied.
func (e *Export) State() *State { return e.state }

// Ended reports whether the ledger is frozen and another one goes on in its place:
// what State().Checkpoint signs need not be the tree of what is copied.
func (e *Export) Ended() bool { return e.ended }

// Head returns the head that is copied.
func (e *Export) Head() storage.Head { return e.state.head }

// Skip passes the events [0, to) by, which were copied before and had this root;
// ErrDamaged when the store has others now.
func (e *Export) Skip(ctx context.Context, to id.Index, root id.Hash) error {
	err := e.x.resume(ctx, to, root)
	if isDamage(err) {
		return fmt.Errorf("export: %w: the store does not hold the first %d events that were exported before: %w", ErrDamaged, to, err)
	}
	if err != nil {
		return fmt.Errorf("export: pass events by: %w", err)
	}
	return nil
}

// Position returns how many events were passed by or returned, and their root.
func (e *Export) Position() (id.Index, id.Hash) { return e.x.tree.Size(), e.x.tree.Root() }

// Next returns the next events, at most most, with their envelopes and the digests
// of their idempotency keys; none at the end.
func (e *Export) Next(ctx context.Context, most int) ([]storage.Event, error) {
	begin := e.x.tree.Size()
	end := min(begin+id.Index(most), e.state.Size())
	events, err := e.read(ctx, begin, end)
	if err == nil {
		err = e.verify(ctx, events)
	}
	if err == nil {
		err = e.keys.attach(ctx, events)
	}
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return events, nil
}

func (e *Export) read(ctx context.Context, begin, end id.Index) ([]storage.Event, error) {
	events := make([]storage.Event, 0, end-begin)
	for event, err := range e.ledgers.store.Events(ctx, e.x.identity.Tenant, begin, end, storage.FieldRecord|storage.FieldEnvelope) {
		if isDamage(err) {
			at := begin + id.Index(len(events))
			if err := e.x.unreadable(ctx, at, err); err != nil && !errors.Is(err, errExamined) {
				return nil, err
			}
			return nil, e.damage()
		}
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	if begin+id.Index(len(events)) < end {
		return nil, fmt.Errorf("%w: %s: entry %d is missing", ErrDamaged, e.x.identity.Origin, begin+id.Index(len(events)))
	}
	return events, nil
}

func (e *Export) verify(ctx context.Context, events []storage.Event) error {
	for i, v := range e.x.in.inspect(e.x.identity, events) {
		if err := e.x.event(ctx, events[i], v); err != nil {
			return err
		}
		if e.found != nil {
			return e.damage()
		}
	}
	return nil
}

// Check looks up all names of the events so far. They are good when it returns nil.
func (e *Export) Check(ctx context.Context) error {
	if err := e.x.checkNames(ctx); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return e.damage()
}

// Finish compares what was read with the head, and that with the store once more.
func (e *Export) Finish(ctx context.Context) error {
	err := e.Check(ctx)
	if err == nil {
		err = e.x.atHead(ctx)
	}
	if err == nil {
		err = e.damage()
	}
	if err == nil {
		err = e.still(ctx)
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// still refuses a store that somebody writes to.
func (e *Export) still(ctx context.Context) error {
	head, err := e.ledgers.store.Head(ctx, e.x.identity.Tenant)
	if err == nil && head != e.state.head {
		err = errors.New("the ledger was written meanwhile: stop the server")
	}
	return err
}

// Retire marks a ledger as moved, for good: it takes no events in this store any
// more. It is refused when head is not its head. A server that has the ledger in
// memory is fenced by the head's epoch: what it appends meets a conflict, and then
// the mark.
func Retire(ctx context.Context, store Store, t id.Tenant, head storage.Head) error {
	l := &Ledgers{store: store, clock: time.Now}
	known, err := l.readFault(ctx, t)
	if err != nil || known.Level == Moved {
		return err
	}
	value, err := json.Marshal(Fault{
		Level: Moved, At: id.InstantOf(l.clock()), Reason: fmt.Sprintf("moved to another store at size %d", head.Size),
	})
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	batch := storage.Batch{Tenant: t, Expect: head, Head: fenced(head), Changes: []storage.Change{{Kind: kindFault, Value: value}}}
	err = store.Append([]storage.Batch{batch}).Wait()[0]
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrStale) {
		err = fmt.Errorf("the ledger was written meanwhile: stop the server: %w", err)
	}
	if err != nil {
		return fmt.Errorf("retire: %w", err)
	}
	return nil
}

// fenced is a head that whoever knows the one before can't append to any more.
func fenced(h storage.Head) storage.Head {
	h.Epoch++
	return h
}

// Local reports whether records of a kind are about a store's copy of a ledger
// and not about the ledger: they are not copied.
func Local(kind storage.Kind) bool { return kind == kindFault || kind == kindReverified }
