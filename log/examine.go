package log

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/did"
	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/edkey"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// Finding is one thing that is wrong in a stored ledger.
type Finding struct {
	Tenant  id.Tenant
	Origin  id.Origin
	Place   string // what is wrong, with its index: "entry 17", "tile 0/3", "head"
	Problem string
	Level   Level // what it does to the ledger: Suspect or Frozen
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s", f.Origin, f.Place, f.Problem)
}

// examiner re-verifies a stored ledger from the store itself, below all caches:
// each entry links to the one before, each record is the entry's, each envelope
// is the record's and is signed, each id leads to its event, and the tree that
// grows from the entries has the stored tiles and the head's root.
type examiner struct {
	store    storage.Ledgers
	identity *Identity
	report   func(Finding)

	head    storage.Head
	tree    *tlog.Builder
	prev    id.Hash
	before  id.Instant
	counted usage
	full    []tlog.FullTile
	ids     []storage.Name // of the events since indices were last looked up
	keys    map[string]edkey.Public
	wrong   bool
}

func newExaminer(store storage.Ledgers, identity *Identity, head storage.Head, report func(Finding)) *examiner {
	return &examiner{
		store: store, identity: identity, report: report, head: head,
		tree: new(tlog.Builder), prev: chain.Genesis(identity.Origin), keys: make(map[string]edkey.Public),
	}
}

// resume continues behind the events [0, position), which were found in order
// and had this root then.
func (x *examiner) resume(ctx context.Context, position id.Index, root id.Hash) error {
	if position == 0 {
		return nil
	}
	last, err := one(x.store.Events(ctx, x.identity.Tenant, position-1, position, storage.Records))
	if err != nil {
		return err
	}
	head := storage.Head{Size: position, Root: root, Last: EntryOf(last).Hash()}
	if x.tree, err = restoreTree(ctx, x.store, x.identity.Tenant, head); err != nil {
		return err
	}
	x.prev, x.before = head.Last, last.ReceivedAt
	return nil
}

// lookups is how many ids are looked up at once.
const lookups = 256

// advance checks the events from where the examiner stands up to end.
func (x *examiner) advance(ctx context.Context, end id.Index) error {
	begin := x.tree.Size()
	next := begin
	for e, err := range x.store.Events(ctx, x.identity.Tenant, begin, end, storage.Records|storage.Envelopes) {
		if err != nil {
			return x.unreadable(next, err)
		}
		if err := x.event(ctx, e); err != nil {
			return err
		}
		next++
	}
	if next < end {
		x.find(Frozen, "entry", uint64(next), "is missing")
		return errExamined
	}
	return x.checkIDs(ctx)
}

// errExamined ends an examination that can't go further; what is wrong has been
// reported.
var errExamined = errors.New("examination ended at a fault")

func (x *examiner) unreadable(at id.Index, err error) error {
	if !errors.Is(err, storage.ErrCorrupt) {
		return err
	}
	x.find(Frozen, "event", uint64(at), err.Error())
	return errExamined
}

func (x *examiner) find(level Level, what string, at uint64, problem string) {
	x.findAt(level, fmt.Sprintf("%s %d", what, at), problem)
}

func (x *examiner) findAt(level Level, place, problem string) {
	x.wrong = true
	x.report(Finding{Tenant: x.identity.Tenant, Origin: x.identity.Origin, Place: place, Problem: problem, Level: level})
}

func (x *examiner) event(ctx context.Context, e storage.Event) error {
	at := uint64(e.Index)
	if e.Entry.Prev != x.prev {
		x.find(Frozen, "entry", at, "does not link to the entry before")
	}
	if chain.RecordHash(e.Record) != e.Entry.Record {
		x.find(Suspect, "record", at, "is not the one that the entry commits to")
	} else if problem := x.record(e); problem != "" {
		x.find(Suspect, "record", at, problem)
	}
	x.prev = EntryOf(e).Hash()
	x.full = x.tree.Append(x.full[:0], x.prev)
	for _, t := range x.full {
		if err := x.tile(ctx, t); err != nil {
			return err
		}
	}
	x.ids = append(x.ids, storage.Name{Text: string(e.ID)})
	if len(x.ids) < lookups {
		return nil
	}
	return x.checkIDs(ctx)
}

// record checks what a record says against everything stored beside it.
func (x *examiner) record(e storage.Event) string {
	r, err := chain.ParseRecord(e.Record)
	switch {
	case err != nil:
		return "is malformed"
	case r.SequenceNum != e.Index.Sequence() || r.Origin != x.identity.Origin || r.OrganizationID != x.identity.Organization:
		return "belongs to another place"
	case r.EventID != e.ID || r.AgentID != e.Agent || r.ReceivedAt != e.ReceivedAt || r.Policy.Effective != e.Effective:
		return "differs from its columns"
	case r.ReceivedAt < x.before:
		return "was received before the one before it"
	}
	x.before = r.ReceivedAt
	if r.Signer != chain.SignerSystem {
		x.counted.admit(monthOf(r.ReceivedAt), []Draft{{Counted: true}})
	}
	if e.Envelope == nil {
		return ""
	}
	if problem := x.envelope(e, &r); problem != "" {
		x.find(Suspect, "envelope", uint64(e.Index), problem)
	}
	return ""
}

func (x *examiner) envelope(e storage.Event, r *chain.Record) string {
	envelope, err := event.Parse(e.Envelope, event.Options{Server: true, MaxBytes: len(e.Envelope) + 1, Organization: x.identity.Organization})
	switch {
	case err != nil || !bytes.Equal(envelope.Canonical, e.Envelope):
		return "is malformed"
	case envelope.Digest != r.EventDigest || envelope.SignatureB64 != r.SigValueB64:
		return "is not the one that the record is about"
	case envelope.EventID != r.EventID || envelope.AgentID != r.AgentID || envelope.KeyID != r.KeyID || envelope.Decision != r.Policy.Declared:
		return "differs from the record"
	case envelope.TraceID != e.Trace || envelope.Tool != e.Tool || envelope.ActionKind != e.ActionKind:
		return "differs from the columns"
	}
	key, err := x.key(r.PublicKey)
	if err != nil {
		return "is signed by a key that is none"
	}
	if form, ok := envelope.Verify(key); !ok || form.String() != r.SigForm {
		return "is not signed as the record says"
	}
	return ""
}

// maxKeys bounds the decoded keys that one examination keeps.
const maxKeys = 4096

func (x *examiner) key(multikey string) (edkey.Public, error) {
	if k, ok := x.keys[multikey]; ok {
		return k, nil
	}
	raw, err := did.ParseMultikey(multikey)
	if err != nil {
		return edkey.Public{}, err
	}
	k, err := edkey.ParsePublic(raw[:])
	if err != nil {
		return edkey.Public{}, err
	}
	if len(x.keys) >= maxKeys {
		clear(x.keys)
	}
	x.keys[multikey] = k
	return k, nil
}

// tile compares a tile that has just filled with the stored one and its root.
func (x *examiner) tile(ctx context.Context, t tlog.FullTile) error {
	place := fmt.Sprintf("tile %d/%d", t.Level, t.Index)
	stored, err := x.store.Tiles(ctx, x.identity.Tenant, t.Level, []uint64{t.Index})
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrCorrupt):
		x.findAt(Frozen, place, err.Error())
	case err != nil:
		return err
	case !bytes.Equal(stored[0], t.Hashes):
		x.findAt(Frozen, place, "is not that of the entries")
	}
	roots, err := x.store.TileRoots(ctx, x.identity.Tenant, t.Level, t.Index, t.Index+1)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrCorrupt):
		x.findAt(Frozen, "root of "+place, err.Error())
	case err != nil:
		return err
	case roots[0] != t.Root:
		x.findAt(Frozen, "root of "+place, "is not that of the tile")
	}
	return nil
}

// checkIDs looks up the ids of the events since the last call.
func (x *examiner) checkIDs(ctx context.Context) error {
	if len(x.ids) == 0 {
		return nil
	}
	first := x.tree.Size() - id.Index(len(x.ids))
	at, err := x.store.Lookup(ctx, x.identity.Tenant, x.ids)
	if err != nil {
		return x.unreadable(first, err)
	}
	for i, index := range at {
		if index != first+id.Index(i) {
			x.find(Suspect, "event id of", uint64(first)+uint64(i), "leads elsewhere")
		}
	}
	x.ids = x.ids[:0]
	return nil
}

// atHead compares what the examiner arrived at with the head.
func (x *examiner) atHead() {
	switch {
	case x.tree.Root() != x.head.Root:
		x.findAt(Frozen, "head", "its root is not that of the entries")
	case x.prev != x.head.Last:
		x.findAt(Frozen, "head", "its last event hash is not that of the last entry")
	case x.head.Size > 0 && x.before != x.head.LastReceived:
		x.findAt(Suspect, "head", "its last time is not that of the last entry")
	}
}

// counters compares the counter of the newest month. Only an examination from
// the first event on knows how many there were.
func (x *examiner) counters(ctx context.Context) error {
	if x.head.Size == 0 {
		return nil
	}
	want := usage{month: monthOf(x.head.LastReceived)}
	if x.counted.month == want.month {
		want = x.counted
	}
	got, err := x.store.Counters(ctx, x.identity.Tenant, []string{want.month.counter()})
	if errors.Is(err, storage.ErrCorrupt) || (err == nil && got[0] != want.count) {
		x.findAt(Suspect, "counter "+want.month.counter(), "is not the number of events")
		return nil
	}
	return err
}
