package audit

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Export reads one ledger in order from a store without a writer, and verifies the whole ledger as Fsck does. The first
// fault ends it with log.ErrDamaged and the location.
type Export struct {
	store    log.Store
	identity *log.Identity
	state    *log.State
	x        *examiner
	found    *Finding
	keys     keyReader
	ended    bool
	skipped  id.Index
	erased   []id.Range
}

// ErrNotHere is wrapped by the error of copying a ledger whose import has not ended.
var ErrNotHere = errors.New("its import has not ended")

// ErrErasedSince is wrapped by the error of continuing a copy if copied events were erased since. A new copy must be
// made, because the old one still contains their envelopes.
var ErrErasedSince = errors.New("events that were copied before have since been erased: copy it again, to an empty folder")

// OpenExport compares the stored parts of a ledger with one another and with its anchor. It uses Store, Keyring,
// Anchors and Logger of o, and owns none of them. It rejects a ledger that no anchor confirms.
func OpenExport(ctx context.Context, o log.Options, t id.Tenant) (*Export, error) {
	if err := o.Store.Barrier(ctx); err != nil {
		return nil, fmt.Errorf("export: barrier: %w", err)
	}
	e := &Export{store: o.Store}
	if err := e.openLedger(ctx, o, t); err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return e, nil
}

func (e *Export) openLedger(ctx context.Context, o log.Options, t id.Tenant) error {
	stored, err := log.NewReader(o).Open(ctx, t)
	if err != nil {
		return err
	}
	e.identity = stored.Identity()
	if err := e.checkLevel(ctx, stored); err != nil {
		return err
	}
	e.state, err = stored.State(ctx)
	if log.IsDamage(err) {
		err = fmt.Errorf("%s: %w: %w", e.identity.Origin, log.ErrDamaged, err)
	}
	if err != nil {
		return err
	}
	e.x = newExaminer(e.store, newInspector(runtime.GOMAXPROCS(0)), e.identity, e.state.Head(), e.keepFirstFinding)
	copier, err := storage.CopierOf(e.store)
	if err != nil {
		return err
	}
	e.keys = keyReader{store: copier, tenant: t, size: e.state.Size()}
	return e.compareAnchor(ctx, o, stored)
}

// checkLevel rejects a ledger with a fault on record unless it has a successor.
func (e *Export) checkLevel(ctx context.Context, stored *log.Stored) error {
	known, err := stored.RecordedFault(ctx)
	switch {
	case log.IsDamage(err):
		return fmt.Errorf("%s: %w: fault record: %w", e.identity.Origin, log.ErrDamaged, err)
	case err != nil:
		return err
	case known.Level == log.Importing:
		return fmt.Errorf("%s: %w", e.identity.Origin, ErrNotHere)
	}
	level, err := stored.LevelNow(ctx, known.Level)
	if err != nil {
		return err
	}
	switch level {
	case log.Healthy, log.Moved:
	case log.Succeeded:
		e.ended = true
	default:
		return fmt.Errorf("%s: %w: there is a fault on record: %s", e.identity.Origin, log.ErrDamaged, known.Reason)
	}
	return nil
}

// compareAnchor rejects a ledger that does not extend its anchor. A frozen ledger that has a successor is copied as it
// is, together with the checkpoint that it shows.
func (e *Export) compareAnchor(ctx context.Context, o log.Options, stored *log.Stored) error {
	if _, known := o.Anchors.Find(e.identity.Origin); !known && e.state.Size() == 0 {
		return nil
	}
	if err := stored.ConfirmHead(ctx, e.state); err != nil {
		return err
	}
	if f := e.state.Fault(); f.Level != log.Healthy && !e.ended {
		return fmt.Errorf("%s: %w: head: %s", e.identity.Origin, log.ErrDamaged, f.Reason)
	}
	return nil
}

func (e *Export) keepFirstFinding(f Finding) {
	if e.found == nil {
		e.found = &f
	}
}

// firstFinding returns the first finding as an error, or nil.
func (e *Export) firstFinding() error {
	if e.found == nil {
		return nil
	}
	return fmt.Errorf("%w: %v", log.ErrDamaged, *e.found)
}

// State returns the state that is being copied.
func (e *Export) State() *log.State { return e.state }

// Ended reports whether the ledger is frozen and has a successor. The checkpoint of State may then be of another tree
// than the copied one.
func (e *Export) Ended() bool { return e.ended }

// Head returns the head that is being copied.
func (e *Export) Head() storage.Head { return e.state.Head() }

// Skip skips the events [0, to), which were copied before and had this root. It returns log.ErrDamaged if the store has
// other events now.
func (e *Export) Skip(ctx context.Context, to id.Index, root id.Hash) error {
	err := e.x.resumeBehind(ctx, to, root)
	if log.IsDamage(err) {
		return fmt.Errorf("export: %w: the store does not hold the first %d events that were exported before: %w",
			log.ErrDamaged, to, err)
	}
	if err != nil {
		return fmt.Errorf("export: skip events: %w", err)
	}
	e.skipped = to
	return nil
}

// Position returns the number of events that were skipped or returned, and their root.
func (e *Export) Position() (id.Index, id.Hash) { return e.x.tree.Size(), e.x.tree.Root() }

// Next returns up to most next events with their envelopes and the digests of their idempotency keys. It returns none
// at the end.
func (e *Export) Next(ctx context.Context, most int) ([]storage.Event, error) {
	begin := e.x.tree.Size()
	end := min(begin+id.Index(most), e.state.Size())
	events, err := e.readEvents(ctx, begin, end)
	if err == nil {
		err = e.examineEvents(ctx, events)
	}
	if err == nil {
		err = e.keys.attachKeys(ctx, events)
	}
	if err != nil {
		return nil, fmt.Errorf("export: %w", err)
	}
	return events, nil
}

func (e *Export) readEvents(ctx context.Context, begin, end id.Index) ([]storage.Event, error) {
	events := make([]storage.Event, 0, end-begin)
	for event, err := range e.store.Events(ctx, e.identity.Tenant, begin, end,
		storage.FieldRecord|storage.FieldEnvelope) {
		if log.IsDamage(err) {
			if err := e.x.examineDamaged(ctx, begin+id.Index(len(events)), err); err != nil {
				return nil, err
			}
			return nil, e.firstFinding()
		}
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	if at := begin + id.Index(len(events)); at < end {
		return nil, fmt.Errorf("%w: %s: entry %d is missing", log.ErrDamaged, e.identity.Origin, at)
	}
	return events, nil
}

func (e *Export) examineEvents(ctx context.Context, events []storage.Event) error {
	for i, v := range e.x.in.inspectAll(e.identity, events) {
		if err := e.x.examineEvent(ctx, events[i], v); err != nil {
			return err
		}
		if e.found != nil {
			return e.firstFinding()
		}
		e.noteErasure(v.erasure)
	}
	return nil
}

// noteErasure records the ranges of a statement that concern skipped events.
func (e *Export) noteErasure(erasure *event.Erasure) {
	if erasure == nil {
		return
	}
	for _, r := range erasure.Ranges {
		if r.Begin < e.skipped {
			e.erased = append(e.erased, id.Range{Begin: r.Begin, End: min(r.End, e.skipped)})
		}
	}
}

// Erased returns the skipped events that later returned events state to be erased. They may include events of the
// service, which keep their envelopes.
func (e *Export) Erased() []id.Range { return e.erased }

// Check looks up the IDs of all events so far. If it returns nil, the events are verified.
func (e *Export) Check(ctx context.Context) error {
	if err := e.x.lookUpNames(ctx); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return e.firstFinding()
}

// Finish compares the events with the head, and the head with the store once more.
func (e *Export) Finish(ctx context.Context) error {
	err := e.Check(ctx)
	if err == nil {
		err = e.x.compareHead(ctx)
	}
	if err == nil {
		err = e.firstFinding()
	}
	if err == nil {
		err = e.checkUnchanged(ctx)
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// checkUnchanged returns an error if the store has a writer.
func (e *Export) checkUnchanged(ctx context.Context) error {
	head, err := e.store.Head(ctx, e.identity.Tenant)
	if err == nil && head != e.state.Head() {
		err = errors.New("the ledger was written in the meantime: stop the server")
	}
	return err
}
