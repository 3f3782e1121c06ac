package log

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify"
)

// FsckResult counts what Fsck looked at.
type FsckResult struct {
	Ledgers, Events, Findings int
	Importing, Moved          int // of the ledgers: not open for events here, without being at fault
	Succeeded                 int // frozen ones in whose place another goes on
}

// Ledgers are examined ahead of the one whose findings are being reported, so many
// in all. One that has found so much waits for its turn.
const (
	fsckAtOnce    = 8
	findingsAhead = 64
)

// Fsck re-verifies every ledger of a store from its first event, and each head
// against its anchor, and reports what is wrong, ledger by ledger in the order of
// the store and of the events, from the caller's goroutine. It uses all processors,
// for one ledger as for many. The store must have no writer. anchors may be nil. An
// error means that the check could not be finished.
func Fsck(ctx context.Context, store Store, keyring *seal.Keyring, anchors *anchor.Folder, report func(Finding)) (FsckResult, error) {
	examining, stop := context.WithCancel(ctx)
	f := &fsck{
		store: store, keyring: keyring, anchors: anchors, in: newInspector(runtime.GOMAXPROCS(0)),
		begun: make(chan *examination, fsckAtOnce-1),
	}
	f.running.Go(func() { f.begin(examining) })
	defer f.running.Wait()
	defer stop()
	var result FsckResult
	var missing *anchor.Comparison
	if anchors != nil {
		missing = anchors.CompareOrigins()
	}
	for e := range f.begun {
		for found := range e.findings {
			result.Findings++
			report(found)
		}
		result.count(e, missing)
		if e.err != nil {
			return result, fmt.Errorf("fsck: %w", e.err)
		}
	}
	if err := ctx.Err(); err != nil || anchors == nil {
		return result, err
	}
	if err := reportMissing(missing, report); err != nil {
		return result, fmt.Errorf("fsck: %w", err)
	}
	result.Findings += missing.CountMissing()
	return result, nil
}

// reportMissing reports the origins that have an anchor and no ledger.
func reportMissing(missing *anchor.Comparison, report func(Finding)) error {
	origins, slugs, err := missing.Missing()
	if err != nil {
		return err
	}
	for _, o := range origins {
		problem := "there is no ledger of this origin in the store"
		if slug, named := slugs[o]; named {
			problem += ", its slug was " + string(slug)
		}
		report(Finding{Origin: o, Place: "anchor", Problem: problem, Level: Frozen})
	}
	return nil
}

// count adds what an examination came to.
func (r *FsckResult) count(e *examination, missing *anchor.Comparison) {
	r.Events += e.size
	if e.origin == "" {
		return
	}
	r.Ledgers++
	if missing != nil {
		missing.MarkPresent(e.origin)
	}
	switch e.level {
	case Importing:
		r.Importing++
	case Moved:
		r.Moved++
	case Succeeded:
		r.Succeeded++
	}
}

// fsck is one run of Fsck.
type fsck struct {
	store   Store
	keyring *seal.Keyring
	anchors *anchor.Folder
	in      *inspector
	begun   chan *examination // in the order of the store; closed at the end
	running sync.WaitGroup
}

// examination is one ledger's. All but findings is set when those are closed.
type examination struct {
	findings chan Finding

	origin id.Origin // "" when its identity can't be read
	size   int       // events that were examined
	level  Level
	err    error // the examination was not finished
}

// begin begins the examination of all ledgers, each when there is room, until ctx ends.
func (f *fsck) begin(ctx context.Context) {
	defer close(f.begun)
	for t, err := range f.store.Tenants(ctx) {
		e := &examination{findings: make(chan Finding, findingsAhead)}
		select {
		case f.begun <- e:
		case <-ctx.Done():
			return
		}
		if err != nil {
			e.err = fmt.Errorf("list ledgers: %w", err)
			close(e.findings)
			return
		}
		f.running.Go(func() {
			defer close(e.findings)
			f.examine(ctx, t, e)
		})
	}
}

// examine examines one ledger.
func (f *fsck) examine(ctx context.Context, t id.Tenant, e *examination) {
	report := func(found Finding) {
		select {
		case e.findings <- found:
		case <-ctx.Done():
		}
	}
	l := &Ledgers{store: f.store, keyring: f.keyring, anchors: f.anchors}
	identity, keys, err := l.readIdentity(ctx, t)
	switch {
	case ctx.Err() != nil:
		e.err = ctx.Err()
		return
	case err != nil:
		report(Finding{Tenant: t, Origin: "(unknown)", Place: "identity", Problem: err.Error(), Level: Frozen})
		return
	}
	e.origin = identity.Origin
	if e.size, e.level, err = f.ledger(ctx, l, identity, keys, report); err != nil {
		e.err = fmt.Errorf("%s: %w", identity.Origin, err)
	}
}

func (f *fsck) ledger(ctx context.Context, l *Ledgers, identity *Identity, keys *logKeys, report func(Finding)) (size int, level Level, err error) {
	head, err := l.store.Head(ctx, identity.Tenant)
	if isDamage(err) {
		report(Finding{Tenant: identity.Tenant, Origin: identity.Origin, Place: "head", Problem: err.Error(), Level: Frozen})
		return 0, Healthy, nil
	}
	if err != nil {
		return 0, Healthy, err
	}
	x := newExaminer(l.store, f.in, identity, head, report)
	if level, err = x.records(ctx, l); err != nil {
		return 0, level, err
	}
	err = x.advance(ctx, head.Size)
	if err == nil {
		err = x.atHead(ctx)
	}
	if err == nil && level != Importing && level != Succeeded {
		err = x.anchor(ctx, l, keys)
	}
	if err == nil && identity.Predecessor != 0 && head.Size > 0 {
		err = x.succession(ctx, l)
	}
	if errors.Is(err, errExamined) {
		err = nil
	}
	return int(x.tree.Size()), level, err
}

// records reports what is on record of the ledger, and what of that can't be read.
func (x *examiner) records(ctx context.Context, l *Ledgers) (Level, error) {
	known, err := l.readFault(ctx, x.identity.Tenant)
	switch {
	case isDamage(err):
		x.findAt(Frozen, "fault record", err.Error())
	case err != nil:
		return known.Level, err
	}
	level, err := l.orSucceeded(ctx, x.identity.Tenant, known.Level)
	if err != nil {
		return level, err
	}
	switch level {
	case Healthy, Importing, Moved, Succeeded: // what a succeeded one is frozen for is told by its successor
	default:
		x.findAt(level, "ledger", "has a fault on record: "+known.Reason)
	}
	if _, err = l.Reverified(ctx, x.identity.Tenant); isDamage(err) {
		x.findAt(Suspect, "re-verification record", err.Error())
		err = nil
	}
	return level, err
}

// anchor compares the examined head with its anchor.
func (x *examiner) anchor(ctx context.Context, l *Ledgers, keys *logKeys) error {
	if l.anchors == nil {
		return nil
	}
	l.tiles, l.leafCache = newTileCache(1<<20), newLeafCache(1<<20)
	shown, ok := l.anchors.Find(x.identity.Origin)
	if !ok {
		if x.head.Size > 0 {
			x.findAt(ReadOnly, "anchor", "is missing")
		}
		return nil
	}
	s := &State{identity: x.identity, keys: keys, head: x.head, tree: x.tree}
	ok, err := extends(ctx, l, s, shown.Size, shown.Root)
	switch {
	case isDamage(err):
		x.findAt(Frozen, "anchor", "can't be compared: "+err.Error())
	case err != nil:
		return err
	case !ok:
		x.findAt(Frozen, "head", fmt.Sprintf("does not extend the checkpoint shown at size %d", shown.Size))
	}
	return nil
}

// succession checks that the first event of a successor says which ledger it
// succeeds, with a checkpoint that this one has signed.
func (x *examiner) succession(ctx context.Context, l *Ledgers) error {
	first, err := one(x.store.Events(ctx, x.identity.Tenant, 0, 1, storage.FieldRecord|storage.FieldEnvelope))
	if isDamage(err) {
		return nil // which has been told
	}
	if err != nil {
		return err
	}
	said, err := verify.ReadSuccession(x.identity.Origin, EntryOf(first), first.Record, first.Envelope)
	if err != nil {
		x.findAt(Suspect, "record 0", err.Error())
		return nil
	}
	before, keys, err := l.readIdentity(ctx, x.identity.Predecessor)
	if err == nil && before.Origin != said.Predecessor {
		err = errInconsistent
	}
	if err == nil {
		_, err = keys.open([]byte(said.Checkpoint))
	}
	if err != nil {
		x.findAt(Suspect, "predecessor", "is not the one that record 0 names: "+err.Error())
	}
	return nil
}
