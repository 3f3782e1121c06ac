package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log/takeover"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// ErrDamaged is wrapped by the error of copying a damaged ledger. The message contains the location.
var ErrDamaged = errors.New("damaged")

// Import is the import of one ledger from another store. Its events pass through the sequencer like all others. Until Open
// or End, the ledger is marked as importing and accepts no other events.
type Import struct {
	ledgers *Ledgers
	led     *ledger
	head    storage.Head     // after all events passed to Append
	counted map[Month]uint64 // including events in flight; a month that is missing was not read yet
}

// Standing is what this store contains of a ledger to be imported.
type Standing struct {
	Identity *Identity
	Head     storage.Head // zero if the ledger is absent
	Level    Level

	keys  *logKeys
	other bool // the stored identity has other log keys, or the same keys sealed differently
}

// KeyAt returns the key that State.VerifierKey returns at the given size.
func (s *Standing) KeyAt(size id.Index) tlog.VerifierKey { return s.keys.primaryKey(size) }

// Absent reports whether the store contains nothing of the ledger.
func (s *Standing) Absent() bool { return s.Head == storage.Head{} }

// IsIdentity reports whether a record is the identity of a ledger, which contains its sealed log keys.
func IsIdentity(r storage.Record) bool { return r.Kind == kindIdentity && r.Key == "" }

// Standing looks up a ledger by the identity from its export. It returns fault.Conflict if another ledger has the tenant, or
// wraps seal.ErrUnknownKey if the log key can't be opened.
func (l *Ledgers) Standing(ctx context.Context, t id.Tenant, identity storage.Record) (Standing, error) {
	arriving, keys, err := l.parseArriving(t, identity)
	if err != nil {
		return Standing{}, err
	}
	standing := Standing{Identity: arriving, keys: keys}
	standing.Head, err = l.store.Head(ctx, t)
	if errors.Is(err, storage.ErrNotFound) {
		return standing, nil
	}
	if err != nil {
		return Standing{}, fmt.Errorf("import: head: %w", err)
	}
	stored, err := l.store.Get(ctx, t, kindIdentity, "")
	if err != nil {
		return Standing{}, fmt.Errorf("import: identity: %w", err)
	}
	here, hereKeys, err := l.parseArriving(t, stored)
	if err != nil {
		return Standing{}, err
	}
	// The first log key never changes. Later keys, and how keys are sealed, may differ.
	if *here != *arriving || hereKeys.all[0].Verifier.String() != keys.all[0].Verifier.String() {
		return Standing{}, fault.New(fault.Conflict, "Another organization has the same tenant handle in this store")
	}
	standing.other = !bytes.Equal(stored.Value, identity.Value)
	known, err := l.storedFault(ctx, t)
	standing.Level = known.Level
	return standing, err
}

// parseArriving parses the identity record of a ledger to be imported.
func (l *Ledgers) parseArriving(t id.Tenant, r storage.Record) (*Identity, *logKeys, error) {
	var stored identityRecord
	if err := json.Unmarshal(r.Value, &stored); err != nil || !IsIdentity(r) {
		return nil, nil, fmt.Errorf("import: %w: identity", ErrDamaged)
	}
	keys, err := openLogKeys(l.keyring, stored)
	if err != nil {
		return nil, nil, fmt.Errorf("import: log key: %w", err)
	}
	return stored.toIdentity(t), keys, nil
}

// BeginImport creates the ledger, marked as importing. It also resumes an import that did not end, and begins the import of
// a ledger that returns to a store where it is marked as moved. It returns fault.Conflict if the store contains the ledger
// in any other state. The ledgers must be opened with Options.Importing.
func (l *Ledgers) BeginImport(ctx context.Context, t id.Tenant, identity storage.Record) (*Import, error) {
	standing, err := l.Standing(ctx, t, identity)
	if err != nil {
		return nil, err
	}
	identityChange := []storage.Change{{Kind: kindIdentity, Value: identity.Value, Version: identity.Version, If: storage.AnyVersion}}
	switch standing.Level {
	case Importing, Moved:
		if standing.Level == Moved || standing.other {
			err = l.beginImportAt(t, standing.Head, takeover.Raise(standing.Head), identityChange)
		}
	case Healthy:
		if !standing.Absent() {
			return nil, fault.New(fault.Conflict, "The organization is already here and open")
		}
		empty := storage.Head{Root: tlog.EmptyRoot(), Last: event.Genesis(standing.Identity.Origin), ConfigVersion: 1}
		err = l.beginImportAt(t, storage.Head{}, empty, identityChange, standing.Identity.initialCounters()...)
	default:
		return nil, fault.New(fault.Conflict, "The organization is already here, and its ledger has a fault: "+string(standing.Level))
	}
	if err != nil {
		return nil, err
	}
	led, err := l.residentLedger(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := led.published.Load().Trusted(); err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return &Import{ledgers: l, led: led, head: led.published.Load().head, counted: make(map[Month]uint64)}, nil
}

// beginImportAt moves a ledger from expect to head and marks it as importing.
func (l *Ledgers) beginImportAt(t id.Tenant, expect, head storage.Head, changes []storage.Change, counters ...storage.Counter) error {
	value, err := json.Marshal(Fault{Level: Importing, Reason: "its import has not ended", At: id.InstantOf(l.clock())})
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	mark := storage.Change{Kind: kindFault, Value: value, If: storage.AnyVersion}
	batch := storage.Batch{Tenant: t, Expect: expect, Head: head, Counters: counters, Changes: append(changes, mark)}
	if err := l.store.Append([]storage.Batch{batch}).Wait()[0]; err != nil {
		return fmt.Errorf("import: begin: %w", err)
	}
	return nil
}

// Head returns the head after all events passed to Append.
func (i *Import) Head() storage.Head { return i.head }

// Identity returns the identity of the ledger.
func (i *Import) Identity() *Identity { return i.led.identity }

// Append queues the next events, with the key digests of audit.Export.Next. The caller must have verified the documents of
// each event (audit.Import does). wait returns when the events are durable. It must be called once for each Append; at most
// two Appends may be pending.
func (i *Import) Append(events []storage.Event) (wait func(context.Context) error, err error) {
	subs := make([]*submission, len(events))
	for n := range events {
		if subs[n], err = i.newSubmission(&events[n]); err != nil {
			return nil, fmt.Errorf("import: %w", err)
		}
	}
	dropped, err := i.ledgers.queue.enqueueAll(i.led, subs, i.ledgers.maxWaiting, i.ledgers.maxWaitingTenant)
	if err == nil && dropped {
		err = errors.New("the ledger was unloaded")
	}
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	return func(ctx context.Context) error { return awaitLanded(ctx, subs, events) }, nil
}

// newSubmission returns the submission from which the sequencer rebuilds the same event.
func (i *Import) newSubmission(e *storage.Event) (*submission, error) {
	if e.Index != i.head.Size || e.Entry.Prev != i.head.Last {
		return nil, fmt.Errorf("%w: event %d does not follow the one before", ErrDamaged, e.Index)
	}
	record, err := event.ParseRecord(e.Record)
	if err != nil {
		return nil, fmt.Errorf("%w: record %d: %w", ErrDamaged, e.Index, err)
	}
	if e.ReceivedAt < i.head.LastReceived && !i.changesClock(e, &record) {
		return nil, fmt.Errorf("%w: event %d was received before the one before it", ErrDamaged, e.Index)
	}
	change, err := i.countEvent(e.ReceivedAt, record.Signer != event.SignerSystem)
	if err != nil {
		return nil, err
	}
	i.head.Size, i.head.Last, i.head.LastReceived = e.Index+1, EntryOf(*e).Hash(), e.ReceivedAt
	draft := Draft{
		ID: e.ID, Columns: e.Columns, Record: record.Frame(), Envelope: e.Envelope,
		Counted: record.Signer != event.SignerSystem, keyDigest: e.KeyDigest, erasedBy: e.ErasedBy,
	}
	return &submission{
		Submission: Submission{Drafts: []Draft{draft}, Clock: change}, configVersion: i.head.ConfigVersion,
		arrived: true, received: e.ReceivedAt, done: make(chan answer, 1),
	}, nil
}

// changesClock reports whether e is an event of the server by which the ledger goes back to the time of e.
func (i *Import) changesClock(e *storage.Event, r *event.Record) bool {
	if r.Signer != event.SignerSystem {
		return false
	}
	o := event.Options{Server: true, MaxBytes: len(e.Envelope) + 1, Organization: i.led.identity.Organization}
	envelope, err := event.Parse(e.Envelope, o)
	return err == nil && ReadClockChange(envelope, r.ReceivedAt) == i.head.LastReceived
}

// awaitLanded waits for submissions and checks that they became the same entries.
func awaitLanded(ctx context.Context, subs []*submission, events []storage.Event) error {
	for n, s := range subs {
		select {
		case o := <-s.done:
			if o.stale {
				o.Err = errors.New("the ledger was reconfigured in the meantime")
			}
			if o.Err != nil {
				return fmt.Errorf("import: event %d: %w", events[n].Index, o.Err)
			}
			if got := o.Receipts[0]; got.EventHash != EntryOf(events[n]).Hash() {
				return fmt.Errorf("import: event %d produced a different entry", events[n].Index)
			}
		case <-ctx.Done():
			return fmt.Errorf("import: event %d: %w", events[n].Index, ctx.Err())
		}
	}
	return nil
}

// Open ends an import after all events are durable. note must sign the head, and the head must extend the checkpoint that
// this service has shown, if any. Then note becomes the anchor, and one step writes changes, sets the config version and
// removes the mark.
func (i *Import) Open(ctx context.Context, note []byte, configVersion uint64, changes []storage.Change) error {
	if err := i.openLedger(ctx, note, configVersion, changes); err != nil {
		return fmt.Errorf("import: open: %w", err)
	}
	return nil
}

func (i *Import) openLedger(ctx context.Context, note []byte, configVersion uint64, changes []storage.Change) error {
	s := i.led.published.Load()
	c, err := tlog.OpenCheckpoint(note, s.VerifierKey())
	if err != nil {
		return fmt.Errorf("%w: checkpoint: %w", ErrDamaged, err)
	}
	if c.Size != s.Size() || c.Root != s.Root() || s.head.Last != i.head.Last {
		return fmt.Errorf("%w: the checkpoint has size %d and root %v, but the import has size %d and root %v", ErrDamaged, c.Size, c.Root, s.Size(), s.Root())
	}
	if err := i.ledgers.extendsShown(ctx, s); err != nil {
		return err
	}
	if err := i.ledgers.anchors.Put(note); err != nil {
		return err
	}
	return i.endImport(s, configVersion, append(changes, storage.Change{Kind: kindFault, If: storage.AnyVersion}))
}

// extendsShown returns an error if s does not extend the checkpoint that was shown of the ledger.
func (l *Ledgers) extendsShown(ctx context.Context, s *State) error {
	shown, ok := l.anchors.Find(s.identity.Origin)
	if l.anchors.Doubtful(s.identity.Origin) {
		return errors.New("an anchor of this log may be lost, because anchors.journal is damaged: run adopt --all-heads here first")
	}
	if !ok {
		return nil
	}
	ok, err := extendsTree(ctx, l, s, shown.Size, shown.Root)
	if err == nil && !ok {
		err = fmt.Errorf("it does not extend the checkpoint that was shown at size %d: a newer export is needed", shown.Size)
	}
	return err
}

// Shown returns the size of the latest checkpoint of an origin that is known to have been shown, or 0.
func (l *Ledgers) Shown(o id.Origin) id.Index {
	shown, _ := l.anchors.Find(o)
	return shown.Size
}

// End ends the import of a ledger that is frozen in its old store and has a successor (audit.Export.Ended). note is the last
// checkpoint that it showed. It becomes the anchor even if the events don't lead to it, and the ledger is frozen here too.
func (i *Import) End(ctx context.Context, note []byte, configVersion uint64, changes []storage.Change) error {
	s := i.led.published.Load()
	c, err := s.keys.openCheckpoint(note)
	if err != nil {
		return fmt.Errorf("import: end: %w: checkpoint: %w", ErrDamaged, err)
	}
	value, err := json.Marshal(Fault{Level: Frozen, Reason: "it was frozen where it came from, and another ledger goes on in its place", At: id.InstantOf(i.ledgers.clock())})
	if err == nil && i.ledgers.Shown(s.identity.Origin) <= c.Size {
		err = i.ledgers.anchors.Put(note)
	}
	if err == nil {
		err = i.endImport(s, configVersion, append(changes, storage.Change{Kind: kindFault, Value: value, If: storage.AnyVersion}))
	}
	if err != nil {
		return fmt.Errorf("import: end: %w", err)
	}
	return nil
}

// endImport writes the changes that end an import.
func (i *Import) endImport(s *State, configVersion uint64, changes []storage.Change) error {
	head := s.head
	head.ConfigVersion = configVersion
	batch := storage.Batch{Tenant: s.identity.Tenant, Expect: s.head, Head: head, Changes: changes}
	return i.ledgers.store.Append([]storage.Batch{batch}).Wait()[0]
}

// RecordChecks returns functions that check, by kind, whether a record of a ledger can be decoded. An import calls them
// before it writes anything.
func RecordChecks() map[storage.Kind]func(storage.Record) error {
	return map[storage.Kind]func(storage.Record) error{
		kindIdentity: checkJSON[identityRecord], kindSuccessor: checkJSON[successorRecord],
		kindCounter: func(r storage.Record) error {
			_, err := parseCounter(r.Key, r.Value)
			return err
		},
	}
}

func checkJSON[T any](r storage.Record) error {
	var v T
	if err := json.Unmarshal(r.Value, &v); err != nil {
		return fmt.Errorf("%s: %w: %w", r.Kind, storage.ErrCorrupt, err)
	}
	return nil
}

// Unfinished is an import that has not ended.
type Unfinished struct {
	Identity *Identity
	mark     storage.Record
}

// UnfinishedImport returns the unfinished import of a ledger in a store that has no writer, or nil. It works even if the
// ledger is damaged.
func UnfinishedImport(ctx context.Context, store Store, t id.Tenant) (*Unfinished, error) {
	mark, err := store.Get(ctx, t, kindFault, "")
	if errors.Is(err, storage.ErrNotFound) {
		return nil, nil
	}
	var f Fault
	if err == nil {
		if err := json.Unmarshal(mark.Value, &f); err != nil || f.Level != Importing {
			return nil, nil // a fault record that can't be read is not an import's
		}
	}
	var identity identityRecord
	if err == nil {
		err = (&Ledgers{store: store}).readOwnRecord(ctx, t, kindIdentity, &identity)
	}
	if err != nil {
		return nil, fmt.Errorf("unfinished import: %w", err)
	}
	return &Unfinished{Identity: identity.toIdentity(t), mark: mark}, nil
}

// Drop removes the imported events. If the import ends concurrently, nothing is removed and the error wraps
// storage.ErrStale.
func (u *Unfinished) Drop(ctx context.Context, store storage.Copier) error {
	if err := store.Drop(ctx, u.Identity.Tenant, u.mark); err != nil {
		return fmt.Errorf("drop import: %w", err)
	}
	return nil
}
