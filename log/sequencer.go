package log

import (
	"iter"
	"slices"
	"time"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/telemetry"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// ledgerBatch is the share of one ledger in an append.
type ledgerBatch struct {
	ledger      *ledger
	round       *appendRound
	stream      *stream
	began       time.Duration // when it was taken from the queue, by queue.elapsed
	prior       *ledgerBatch  // of the ledger in another stream, which is to land before; guarded by queue.mu
	landed      bool          // guarded by queue.mu
	subs        []*submission // taken from the queue
	sent        []*submission // those whose events are in the batch
	duplicates  []*submission // duplicates of events in flight: answered when this batch lands
	batch       storage.Batch
	state       *State // published when the batch is durable
	claimedKeys []storage.DedupKey
	counters    []changedCounter    // that the events add to
	erased      int                 // indices that the batch erases
	usedBefore  usage               // the ledger's counter before this batch
	entryBefore storage.EntryResult // the entry before the batch, as it was read back
	err         error               // why it did not land
	anchored    bool                // the anchor of state is written
	last        bool                // when it ended nothing else of its ledger was out
}

// appendInFlight is an append whose outcome is not known yet. pending is nil when it has no batch.
type appendInFlight struct {
	round   *appendRound
	stream  *stream
	batches []*ledgerBatch // those with a batch first, in the batches' order
	sent    int
	pending storage.Pending
	span    telemetry.Span // of handing it to the engine until it is durable
}

// runSequencer is the one goroutine that gives numbers. While it builds an append, the one before it is being synced.
func (l *Ledgers) runSequencer() {
	for r := l.queue.takeRound(); r != nil; r = l.queue.takeRound() {
		for f := range l.launchRound(r) {
			if f.stream.launched == nil {
				f.stream.launched = make(chan appendInFlight, appendsOut)
				l.done.Go(func() { l.finishAppends(f.stream.launched) })
			}
			f.stream.launched <- f // never waits: see appendRound.join
		}
	}
	for _, s := range l.queue.streams {
		if s != nil && s.launched != nil {
			close(s.launched)
		}
	}
}

// launchRound builds the appends of a round and hands each to the engine.
func (l *Ledgers) launchRound(r *appendRound) iter.Seq[appendInFlight] {
	reserveArena(r.batches)
	now := id.InstantOf(l.clock())
	return func(yield func(appendInFlight) bool) {
		for batches := range r.groupByStream() {
			if !yield(l.buildAppend(r, batches, now)) {
				return
			}
		}
	}
}

// arena is the memory of one append, made in a few pieces for all batches. With hundreds
// of organizations in an append, pieces for each would cost more than the events.
type arena struct {
	events   []storage.Event
	names    []storage.DedupKey
	counters []storage.Counter
	sent     []*submission
}

// arenaSize is how much of an arena a batch may take.
type arenaSize struct{ drafts, subs int }

func (p *ledgerBatch) measureArena() (n arenaSize) {
	n.subs = len(p.subs)
	for _, s := range p.subs {
		n.drafts += len(s.Drafts)
	}
	return n
}

// reserveArena gives each batch memory for all that it may become.
func reserveArena(batches []*ledgerBatch) {
	var all arenaSize
	for _, p := range batches {
		n := p.measureArena()
		all.drafts, all.subs = all.drafts+n.drafts, all.subs+n.subs
	}
	const namesEach, countersEach = 2, 1
	r := arena{
		events: make([]storage.Event, all.drafts), names: make([]storage.DedupKey, namesEach*all.drafts),
		counters: make([]storage.Counter, countersEach*len(batches)), sent: make([]*submission, all.subs),
	}
	for _, p := range batches {
		n := p.measureArena()
		p.batch.Events, r.events = cutFront(r.events, n.drafts)
		p.claimedKeys, r.names = cutFront(r.names, namesEach*n.drafts)
		p.batch.Counters, r.counters = cutFront(r.counters, countersEach)
		p.sent, r.sent = cutFront(r.sent, n.subs)
	}
}

// cutFront cuts n elements off the front of s, as an empty slice with that capacity.
func cutFront[T any](s []T, n int) (first, rest []T) { return s[:0:n], s[n:] }

// buildAppend builds the append of one stream and hands it to the engine.
func (l *Ledgers) buildAppend(r *appendRound, batches []*ledgerBatch, now id.Instant) appendInFlight {
	f := appendInFlight{round: r, stream: batches[0].stream, batches: make([]*ledgerBatch, 0, len(batches))}
	built := make([]storage.Batch, 0, len(batches))
	var empty []*ledgerBatch
	for _, p := range batches {
		p.buildBatch(now, l.noteIfAhead(p.ledger.identity, p.ledger.tail.head.LastReceived, now))
		if len(p.sent) == 0 {
			empty = append(empty, p)
			continue
		}
		f.batches = append(f.batches, p)
		built = append(built, p.batch)
	}
	f.sent = len(built)
	f.batches = append(f.batches, empty...)
	if len(built) > 0 {
		f.span = l.tracer.StartLinkedSpan("commit", collectLinks(l.tracer, f.batches))
		f.pending = l.store.Append(built)
		l.metrics.ObserveBatches(built)
	}
	return f
}

// buildBatch turns submissions into a batch on the tail of the ledger. It answers the submissions that can't go, but
// for duplicates of events in flight. early is why the ledger takes no events at now, nil when it does.
func (p *ledgerBatch) buildBatch(now id.Instant, early error) {
	led := p.ledger
	tail := &led.tail
	p.batch.Tenant, p.batch.Expect = led.identity.Tenant, tail.head
	p.usedBefore = tail.used
	if err := led.published.Load().Trusted(); err != nil {
		for _, s := range p.subs {
			s.refuseWith(err)
		}
		return
	}
	led.takenKeysMu.Lock()
	if led.takenKeys == nil {
		led.takenKeys = make(map[storage.DedupKey]struct{})
	}
	for _, s := range p.subs {
		switch {
		case s.arrived, (early != nil) == (s.Clock != nil):
			p.addSubmission(s, now)
		case early != nil:
			s.refuseWith(early)
		default: // it is not early any more
			s.askAgain()
		}
	}
	led.takenKeysMu.Unlock()
	if len(p.sent) == 0 {
		return
	}
	tail.head.Root = tail.tree.Root()
	p.putMonthCounter(tail.used)
	p.putCounters()
	p.batch.Head = tail.head
	p.state = &State{
		ledger: led, identity: led.identity, keys: led.keys.Load(), head: tail.head,
		tree: tail.tree.Clone(), used: tail.used, fault: led.published.Load().fault,
	}
}

// addSubmission puts one submission into the batch, or answers it.
func (p *ledgerBatch) addSubmission(s *submission, now id.Instant) {
	tail := &p.ledger.tail
	if s.configVersion != tail.head.ConfigVersion || !s.Clock.isCurrent(tail.head, s.arrived) {
		s.askAgain()
		return
	}
	erased := s.countErased()
	if erased > 0 && p.erased > 0 { // of another submission: together they may be too many for the store
		s.askAgain()
		return
	}
	claimed := len(p.claimedKeys)
	if p.claimKeys(s) {
		p.duplicates = append(p.duplicates, s)
		return
	}
	received := max(now, tail.head.LastReceived)
	switch {
	case s.arrived:
		received = s.received
	case s.Clock != nil:
		received = s.Clock.At
	}
	changes, err := s.listChanges(tail.head.Size)
	if err != nil {
		p.releaseSince(claimed)
		s.refuseWith(err)
		return
	}
	if s.Clock != nil {
		p.correctClock(s.Clock)
	}
	before := tail.used
	if !tail.used.countDrafts(MonthOf(received), s.Drafts) {
		p.releaseSince(claimed)
		s.refuseWith(&fault.Error{Kind: fault.PlanLimit, Code: "plan_limit", Message: "Monthly event limit reached"})
		return
	}
	if before.month != tail.used.month {
		p.putMonthCounter(before)
	}
	p.erased += erased
	item := len(p.sent)
	p.sent = append(p.sent, s)
	for i := range s.Drafts {
		p.appendEvent(&s.Drafts[i], received, item)
	}
	for _, c := range changes {
		c.Item = item
		p.batch.Changes = append(p.batch.Changes, c)
	}
	if s.Reconfigures {
		tail.head.ConfigVersion++
	}
}

// claimKeys claims the deduplication keys of a submission, or reports that one belongs to an event in flight.
func (p *ledgerBatch) claimKeys(s *submission) bool {
	claimed := len(p.claimedKeys)
	for i := range s.Drafts {
		for n := range s.Drafts[i].yieldKeys {
			if _, out := p.ledger.takenKeys[n]; out {
				p.releaseSince(claimed)
				return true
			}
			p.ledger.takenKeys[n] = struct{}{}
			p.claimedKeys = append(p.claimedKeys, n)
		}
	}
	return false
}

// releaseSince releases the keys that were claimed since there were n.
func (p *ledgerBatch) releaseSince(n int) {
	p.releaseKeys(p.claimedKeys[n:])
	p.claimedKeys = p.claimedKeys[:n]
}

func (p *ledgerBatch) releaseKeys(names []storage.DedupKey) {
	for _, n := range names {
		delete(p.ledger.takenKeys, n)
	}
}

// yieldKeys yields the deduplication keys of the draft, which no other event may have.
func (d *Draft) yieldKeys(yield func(storage.DedupKey) bool) {
	switch {
	case !yield(storage.DedupKey{Text: string(d.ID)}):
	case d.IdempotencyKey != "":
		yield(storage.DedupKey{Idempotency: true, Text: d.IdempotencyKey})
	case d.keyDigest != storage.KeyDigest{}:
		yield(storage.DedupKey{Idempotency: true, Digest: d.keyDigest})
	}
}

// listChanges returns the changes of a submission whose first event is at begin.
func (s *submission) listChanges(begin id.Index) ([]storage.Change, error) {
	if s.Clock != nil {
		return append(slices.Clip(s.Changes), s.Clock.limits...), nil
	}
	if s.Keys == nil {
		return s.Changes, nil
	}
	keys, err := s.Keys.changeAt(begin + id.Index(len(s.Drafts)))
	return append(slices.Clip(s.Changes), keys), err
}

// countDrafts counts the drafts of one submission, all or none.
func (u *usage) countDrafts(m Month, drafts []Draft) bool {
	next := *u
	if next.month != m {
		next = usage{month: m}
	}
	counted := false
	for i := range drafts {
		if !drafts[i].Counted {
			continue
		}
		if drafts[i].Cap > 0 && next.count >= drafts[i].Cap {
			return false
		}
		next.count++
		counted = true
	}
	if counted {
		*u = next
	}
	return true
}

// putMonthCounter puts the counter of a month into the batch, if the batch changed it.
// Only events that arrive from another store can change those of several months.
func (p *ledgerBatch) putMonthCounter(u usage) {
	if u != p.usedBefore {
		p.setCounter(storage.Counter{Name: u.month.CounterName(), Value: u.count})
	}
}

// setCounter puts a counter into the batch, in place of an earlier value.
func (p *ledgerBatch) setCounter(c storage.Counter) {
	if i := slices.IndexFunc(p.batch.Counters, func(was storage.Counter) bool { return was.Name == c.Name }); i >= 0 {
		p.batch.Counters[i] = c
		return
	}
	p.batch.Counters = append(p.batch.Counters, c)
}

// appendEvent gives a draft its number and place in chain and tree.
func (p *ledgerBatch) appendEvent(d *Draft, received id.Instant, item int) {
	tail := &p.ledger.tail
	head := &tail.head
	if len(d.Claims) > 0 {
		p.decideByCounters(d, received, item)
	}
	record := d.Record.Fill(received, head.Size.Sequence())
	entry := event.Entry{Prev: head.Last, Record: event.RecordHash(record), Seq: head.Size.Sequence()}
	columns := d.Columns
	columns.ReceivedAt = received
	p.batch.Events = append(p.batch.Events, storage.Event{
		Index: head.Size, ID: d.ID, Entry: storage.Entry{Prev: entry.Prev, Record: entry.Record},
		Columns: columns, Record: record, Envelope: d.Envelope, ErasedBy: d.erasedBy, Erases: d.Erases,
		IdempotencyKey: d.IdempotencyKey, KeyDigest: d.keyDigest, Item: item,
	})
	head.Last = entry.Hash()
	head.LastReceived = received
	head.Size++
	var full [4]tlog.FullTile
	for _, t := range tail.tree.Append(full[:0], head.Last) {
		p.batch.Tiles = append(p.batch.Tiles, storage.Tile{Level: t.Level, Index: t.Index, Hashes: t.Hashes, Root: t.Root})
	}
}

// makeReceipts returns the receipts of a sent submission whose first event is number first of the batch.
func (p *ledgerBatch) makeReceipts(first int, s *submission, chainValid bool) []Receipt {
	receipts := slices.Grow(s.receipt[:0], len(s.Drafts))
	for i := range s.Drafts {
		e := &p.batch.Events[first+i]
		receipts = append(receipts, Receipt{Index: e.Index, ReceivedAt: e.ReceivedAt, EventHash: p.eventHashAt(first + i), ChainValid: chainValid, Decided: s.Drafts[i].decided})
	}
	return receipts
}

// eventHashAt returns the event hash of the batch's event at i, which the next event, or the head, links to.
func (p *ledgerBatch) eventHashAt(i int) id.Hash {
	if i+1 < len(p.batch.Events) {
		return p.batch.Events[i+1].Entry.Prev
	}
	return p.batch.Head.Last
}
