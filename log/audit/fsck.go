package audit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/seal"
	"github.com/agentledger/agentledger/internal/syncs"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/log/anchor"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/verify"
)

// FsckResult counts the ledgers and events that Fsck has checked, and its findings.
type FsckResult struct {
	Ledgers, Events, Findings int
	Importing, Moved          int // ledgers that accept no events here and are not faulty
	Succeeded                 int // frozen ledgers with a successor
}

// Bounds of the examinations that run ahead of the ledger whose findings are being reported, and of the findings that
// one of them may collect before its turn.
const (
	fsckAtOnce    = 8
	findingsAhead = 64
)

// Fsck re-verifies every ledger of a store from its first event, and compares each head with its anchor. It calls
// report from the caller's goroutine, in the order of the store and of the events. It uses all processors even for a single
// ledger. The store must have no writer. anchors may be nil. It returns an error if the check could not be completed.
func Fsck(ctx context.Context, store log.Store, keyring *seal.Keyring, anchors *anchor.Folder,
	report func(Finding)) (FsckResult, error) {
	return ResumeFsck(ctx, store, keyring, anchors, Resume{}, report)
}

// ResumeFsck is like Fsck, but continues from the marks of an earlier run and records its own.
func ResumeFsck(ctx context.Context, store log.Store, keyring *seal.Keyring, anchors *anchor.Folder,
	resume Resume, report func(Finding)) (FsckResult, error) {
	examining, stop := context.WithCancel(ctx)
	f := &fsck{
		store: store, anchors: anchors, resume: resume, in: newInspector(runtime.GOMAXPROCS(0)),
		reader: log.NewReader(log.Options{Store: store, Keyring: keyring, Anchors: anchors,
			TileCacheBytes: readerCacheBytes, LeafCacheBytes: readerCacheBytes}),
		started: make(chan *examination, fsckAtOnce-1),
	}
	f.running.Go(func() { f.examineAll(examining) })
	defer f.running.Wait()
	defer stop()
	var result FsckResult
	var missing *anchor.Comparison
	if anchors != nil {
		missing = anchors.CompareOrigins()
	}
	for e := range f.started {
		for found := range e.findings {
			result.Findings++
			report(found)
		}
		result.addExamination(e, missing)
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
	for _, problem := range anchors.Problems() {
		report(Finding{Place: "anchors", Problem: problem})
		result.Findings++
	}
	return result, nil
}

// readerCacheBytes bounds the tiles cached for comparing heads with anchors.
const readerCacheBytes = 8 << 20

// reportMissing reports the origins that have an anchor but no ledger.
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
		report(Finding{Origin: o, Place: "anchor", Problem: problem, Level: log.Frozen})
	}
	return nil
}

// addExamination adds the result of an examination that has ended.
func (r *FsckResult) addExamination(e *examination, missing *anchor.Comparison) {
	r.Events += e.size
	if e.origin == "" {
		return
	}
	r.Ledgers++
	if missing != nil {
		missing.MarkPresent(e.origin)
	}
	switch e.level {
	case log.Importing:
		r.Importing++
	case log.Moved:
		r.Moved++
	case log.Succeeded:
		r.Succeeded++
	}
}

// fsck is one run of Fsck.
type fsck struct {
	store   log.Store
	reader  *log.Reader
	anchors *anchor.Folder // may be nil
	resume  Resume
	in      *inspector
	started chan *examination // in the order of the store
	running sync.WaitGroup
}

// examination is the examination of one ledger. All fields except findings are set when findings is closed.
type examination struct {
	findings chan Finding

	origin id.Origin // "" if the identity can't be read
	size   int       // examined events
	level  log.Level
	err    error // why the examination is incomplete
}

// examineAll starts the examination of each ledger as soon as the bounds permit, until ctx ends.
func (f *fsck) examineAll(ctx context.Context) {
	defer close(f.started)
	for t, err := range f.store.Tenants(ctx) {
		e := &examination{findings: make(chan Finding, findingsAhead)}
		select {
		case f.started <- e:
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
			f.examineOne(ctx, t, e)
		})
	}
}

func (f *fsck) examineOne(ctx context.Context, t id.Tenant, e *examination) {
	report := func(found Finding) {
		select {
		case e.findings <- found:
		case <-ctx.Done():
		}
	}
	stored, err := f.reader.Open(ctx, t)
	switch {
	case ctx.Err() != nil:
		e.err = ctx.Err()
		return
	case err != nil:
		report(Finding{Tenant: t, Origin: "(unknown)", Place: "identity", Problem: err.Error(), Level: log.Frozen})
		return
	}
	e.origin = stored.Identity().Origin
	if e.size, e.level, err = f.examineStored(ctx, stored, report); err != nil {
		e.err = fmt.Errorf("%s: %w", e.origin, err)
	}
}

func (f *fsck) examineStored(ctx context.Context, stored *log.Stored,
	report func(Finding)) (size int, level log.Level, err error) {
	identity := stored.Identity()
	head, err := f.store.Head(ctx, identity.Tenant)
	if log.IsDamage(err) {
		report(Finding{Tenant: identity.Tenant, Origin: identity.Origin, Place: "head", Problem: err.Error(),
			Level: log.Frozen})
		return 0, log.Healthy, nil
	}
	if err != nil {
		return 0, log.Healthy, err
	}
	syncs.ExpectWork(ctx, int64(head.Size))
	x := newExaminer(f.store, f.in, identity, head, report)
	if level, err = f.checkRecords(ctx, x, stored); err != nil {
		return 0, level, err
	}
	err = f.advanceInStretches(ctx, x)
	if x.stopped || err != nil {
		return int(x.tree.Size()), level, err
	}
	err = x.compareHead(ctx)
	if err == nil && level != log.Importing && level != log.Succeeded {
		err = f.compareAnchor(ctx, x, stored)
	}
	if err == nil && identity.Predecessor != 0 && head.Size > 0 {
		err = f.checkSuccession(ctx, x)
	}
	return int(x.tree.Size()), level, err
}

// checkRecords reports a fault that is on record, and records that can't be read.
func (f *fsck) checkRecords(ctx context.Context, x *examiner, stored *log.Stored) (log.Level, error) {
	known, err := stored.RecordedFault(ctx)
	switch {
	case log.IsDamage(err):
		x.reportProblem(log.Frozen, "fault record", err.Error())
	case err != nil:
		return known.Level, err
	}
	level, err := stored.LevelNow(ctx, known.Level)
	if err != nil {
		return level, err
	}
	switch level {
	case log.Healthy, log.Importing, log.Moved, log.Succeeded: // a successor states why its predecessor is frozen
	default:
		x.reportProblem(level, "ledger", "has a fault on record: "+known.Reason)
	}
	if _, err = readPosition(ctx, f.store, x.identity.Tenant); errors.Is(err, storage.ErrNotFound) {
		return level, nil
	}
	if log.IsDamage(err) {
		x.reportProblem(log.Suspect, "re-verification record", err.Error())
		err = nil
	}
	return level, err
}

// compareAnchor compares the examined head with its anchor.
func (f *fsck) compareAnchor(ctx context.Context, x *examiner, stored *log.Stored) error {
	if f.anchors == nil {
		return nil
	}
	shown, ok := f.anchors.Find(x.identity.Origin)
	if !ok {
		if x.head.Size > 0 {
			x.reportProblem(log.ReadOnly, "anchor", "is missing")
		}
		return nil
	}
	ok, err := stored.Extends(ctx, x.head, x.tree, shown)
	switch {
	case log.IsDamage(err):
		x.reportProblem(log.Frozen, "anchor", "can't be compared: "+err.Error())
	case err != nil:
		return err
	case !ok:
		x.reportProblem(log.Frozen, "head", fmt.Sprintf("does not extend the checkpoint shown at size %d", shown.Size))
	case f.anchors.Doubtful(x.identity.Origin):
		x.reportProblem(log.ReadOnly, "anchor", "a newer one may have been in the damaged bytes of anchors.journal")
	}
	return nil
}

// checkSuccession checks that the first event of a successor names its predecessor and a checkpoint that the
// predecessor has signed.
func (f *fsck) checkSuccession(ctx context.Context, x *examiner) error {
	first, err := log.ReadEvent(ctx, x.store, x.identity.Tenant, 0, storage.FieldRecord|storage.FieldEnvelope)
	if log.IsDamage(err) {
		return nil // reported already
	}
	if err != nil {
		return err
	}
	succession, err := verify.ReadSuccession(x.identity.Origin, log.EntryOf(first), first.Record, first.Envelope)
	if err != nil {
		x.reportProblem(log.Suspect, "record 0", err.Error())
		return nil
	}
	before, err := f.reader.Open(ctx, x.identity.Predecessor)
	if err == nil && before.Identity().Origin != succession.Predecessor {
		err = log.ErrInconsistent
	}
	if err == nil {
		_, err = before.OpenCheckpoint([]byte(succession.Checkpoint))
	}
	if err != nil {
		x.reportProblem(log.Suspect, "predecessor", "differs from the one in record 0: "+err.Error())
	}
	return nil
}
