package audit

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// Finding is a fault in a stored ledger.
type Finding struct {
	Tenant  id.Tenant
	Origin  id.Origin // "" if the finding is not about one ledger
	Place   string    // the damaged object with its index: "entry 17", "tile 0/3", "head"
	Problem string
	Level   log.Level // the consequence for the ledger: log.Suspect or log.Frozen
}

func (f Finding) String() string {
	if f.Origin == "" {
		return fmt.Sprintf("%s: %s", f.Place, f.Problem)
	}
	return fmt.Sprintf("%s: %s: %s", f.Origin, f.Place, f.Problem)
}

// newFindingAt returns a finding about an object with an index.
func newFindingAt(i *log.Identity, level log.Level, object string, at uint64, problem string) *Finding {
	return &Finding{Tenant: i.Tenant, Origin: i.Origin, Place: fmt.Sprintf("%s %d", object, at), Problem: problem,
		Level: level}
}

// examiner verifies one stored ledger, as described in the package comment. An inspector checks the documents of events
// ahead; the examiner checks everything else in the order of the events. Its memory is bounded by a few portions of
// events, 256 event IDs, and a counter for each month.
type examiner struct {
	store    storage.Ledgers
	identity *log.Identity
	in       *inspector // of the documents
	report   func(Finding)
	parts    storage.Fields // of the events to read

	head     storage.Head
	tree     *tlog.Builder
	whole    bool // began at the first event
	prev     id.Hash
	before   id.Instant // received_at of the latest readable record
	dated    bool       // before is from the record of prev
	counted  map[log.Month]uint64
	unread   uint64 // events missing from counted because they could not be read
	full     []tlog.FullTile
	names    []examinedName              // to be looked up
	wrong    bool                        // a finding was reported
	erasures map[id.Index]*event.Erasure // cached statements by index; nil if the event states none
	stopped  bool                        // at an unreadable entry, so that the examination can't continue
}

type examinedName struct {
	name storage.DedupKey
	at   id.Index
}

func newExaminer(store storage.Ledgers, in *inspector, identity *log.Identity, head storage.Head,
	report func(Finding)) *examiner {
	x := &examiner{
		store: store, identity: identity, in: in, report: report, parts: allParts, head: head, whole: true,
		tree: new(tlog.Builder), prev: event.Genesis(identity.Origin),
		counted: make(map[log.Month]uint64),
	}
	if month, events := identity.Carried(); events > 0 {
		x.counted[month] = events
	}
	return x
}

// resumeBehind continues after the events [0, position), which were verified before and had this root.
func (x *examiner) resumeBehind(ctx context.Context, position id.Index, root id.Hash) error {
	if position == 0 {
		return nil
	}
	head, tree, err := log.RestoreTreeAt(ctx, x.store, x.identity.Tenant, position, root)
	if err != nil {
		return err
	}
	x.tree, x.prev, x.before, x.whole = tree, head.Last, head.LastReceived, false
	return nil
}

// advanceTo examines the events up to end. It continues after an event whose record or envelope can't be read, because
// its entry continues the chain. An unreadable entry ends the examination.
func (x *examiner) advanceTo(ctx context.Context, end id.Index) error {
	for x.tree.Size() < end {
		err := x.readPortions(ctx, end)
		if log.IsDamage(err) {
			err = x.examineDamaged(ctx, x.tree.Size(), err)
		}
		if err != nil || x.stopped {
			return err
		}
	}
	return x.lookUpNames(ctx)
}

// examineDamaged determines which part of an event can't be read.
func (x *examiner) examineDamaged(ctx context.Context, at id.Index, cause error) error {
	part := func(parts storage.Fields) (storage.Event, error) {
		return log.ReadEvent(ctx, x.store, x.identity.Tenant, at, parts)
	}
	e, err := part(0)
	switch {
	case log.IsDamage(err):
		x.reportIndex(log.Frozen, "entry", uint64(at), cause.Error())
		x.stopped = true
		return nil
	case err != nil:
		return err
	}
	if _, err = part(storage.FieldRecord); err == nil {
		x.reportIndex(log.Suspect, "envelope", uint64(at), cause.Error())
	} else {
		x.reportIndex(log.Suspect, "record", uint64(at), cause.Error())
	}
	x.dated = false
	x.unread++
	return x.placeEntry(ctx, e)
}

func (x *examiner) reportIndex(level log.Level, object string, at uint64, problem string) {
	x.reportFinding(*newFindingAt(x.identity, level, object, at, problem))
}

func (x *examiner) reportProblem(level log.Level, place, problem string) {
	x.reportFinding(Finding{Tenant: x.identity.Tenant, Origin: x.identity.Origin, Place: place, Problem: problem,
		Level: level})
}

func (x *examiner) reportFinding(f Finding) {
	x.wrong = true
	x.report(f)
}

// examineEvent examines the next event, whose documents have the verdict v.
func (x *examiner) examineEvent(ctx context.Context, e storage.Event, v verdict) error {
	x.judgeDocuments(&e, v)
	err := x.placeEvent(ctx, e)
	if err == nil && e.ErasedBy != 0 && v.record == "" && v.envelope == "" {
		err = x.checkErasure(ctx, &e)
	}
	if err == nil && v.erasure != nil {
		err = x.checkErased(ctx, e.Index, v.erasure)
	}
	if err == nil && v.result != nil {
		err = x.checkResult(ctx, &e, v.result)
	}
	return err
}

// judgeDocuments processes the verdict on the documents of the next event, and compares it with earlier events.
func (x *examiner) judgeDocuments(e *storage.Event, v verdict) {
	if v.record == "" && v.received < x.before && !x.mayFallBack(v) {
		v.record = "was received before the one before it"
	}
	x.dated = false
	if f := v.toFinding(x.identity, e.Index); f != nil {
		x.reportFinding(*f)
	}
	if v.record != "" {
		x.unread++
		return
	}
	if v.received < x.before {
		x.forgetLaterMonths(log.MonthOf(v.received))
	}
	x.before, x.dated = v.received, true
	if v.counted {
		x.counted[log.MonthOf(v.received)]++
	}
}

// mayFallBack reports whether received_at of the next event may be before x.before, because the event states a clock
// correction.
func (x *examiner) mayFallBack(v verdict) bool {
	if !x.dated { // the previous event could not be read and may be later than x.before
		return v.newest >= x.before
	}
	return v.newest == x.before
}

// forgetLaterMonths resets the counters of months after m, as a ledger_clock event does.
func (x *examiner) forgetLaterMonths(m log.Month) {
	for later := range x.counted {
		if later > m {
			x.counted[later] = 0
		}
	}
}

// placeEvent checks that an event has its place in the chain, the tree and the index.
func (x *examiner) placeEvent(ctx context.Context, e storage.Event) error {
	if err := x.placeEntry(ctx, e); err != nil {
		return err
	}
	return x.noteEventID(ctx, storage.DedupKey{Text: string(e.ID)}, e.Index)
}

// placeEntry adds an entry to the chain and the tree.
func (x *examiner) placeEntry(ctx context.Context, e storage.Event) error {
	if e.Entry.Prev != x.prev {
		x.reportIndex(log.Frozen, "entry", uint64(e.Index), "does not link to the entry before")
	}
	x.prev = log.EntryOf(e).Hash()
	x.full = x.tree.Append(x.full[:0], x.prev)
	for _, t := range x.full {
		if err := x.compareTile(ctx, t); err != nil {
			return err
		}
	}
	return nil
}
