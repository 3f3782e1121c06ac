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

// ledgerBatch is one ledger's part of an append.
type ledgerBatch struct {
	ledger      *ledger
	round       *appendRound
	stream      *stream
	began       time.Duration // by queue.elapsed, when it was taken from the queue
	prior       *ledgerBatch  // batch of the ledger in another stream that must land before; guarded by queue.mu
	landed      bool          // guarded by queue.mu
	subs        []*submission // taken from the queue
	sent        []*submission // submissions whose events are in batch
	duplicates  []*submission // submissions that duplicate events in flight; answered when this batch lands
	batch       storage.Batch
	state       *State // to publish when the batch is durable
	claimedKeys []storage.DedupKey
	counters    []changedCounter    // counters of limits that the events add to
	erased      int                 // number of indices that the batch erases
	usedBefore  usage               // month's counter before the batch
	entryBefore storage.EntryResult // the entry before the batch, as read back from the store
	err         error               // why it was not applied, or errBehind
	anchored    bool                // the anchor of state is written already
	last        bool                // no other batch of its ledger was in flight when it landed
}

// appendInFlight is an append of one stream. pending is nil if no submission was sent to the engine.
type appendInFlight struct {
	round   *appendRound
	stream  *stream
	batches []*ledgerBatch
	sent    int // batches[:sent] were sent to the engine, in this order
	pending storage.Pending
	span    telemetry.Span // from handing the append to the engine until its outcome is known
}

// runSequencer is the only goroutine that numbers events. While it builds an append, the previous one is being synced.
func (l *Ledgers) runSequencer() {
	for r := l.queue.takeRound(); r != nil; r = l.queue.takeRound() {
		for f := range l.launchRound(r) {
			if f.stream.launched == nil {
				f.stream.launched = make(chan appendInFlight, appendsOut)
				l.done.Go(func() { l.finishAppends(f.stream.launched) })
			}
			f.stream.launched <- f // never blocks, because addStream bounds the appends in flight
		}
	}
	for _, s := range l.queue.streams {
		if s != nil && s.launched != nil {
			close(s.launched)
		}
	}
}

// launchRound builds the appends of a round, one for each stream, and hands each to the engine.
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

// arena is the memory of one append, allocated at once for all batches. With hundreds of organizations in an append,
// separate allocations would cost more than the events.
type arena struct {
	events   []storage.Event
	names    []storage.DedupKey
	counters []storage.Counter
	sent     []*submission
}

// arenaSize is the part of an arena that a batch may need.
type arenaSize struct{ drafts, subs int }

func (p *ledgerBatch) measureArena() (n arenaSize) {
	n.subs = len(p.subs)
	for _, s := range p.subs {
		n.drafts += len(s.Drafts)
	}
	return n
}

// reserveArena gives each batch enough memory for all of its submissions.
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

// cutFront returns the first n elements of s as an empty slice with capacity n, and the rest.
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

// buildBatch turns submissions into a batch at the tail of the ledger. It answers the submissions that can't be part of
// it, except duplicates of events in flight. early is the error if the ledger is ahead of the clock at now.
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
		default: // a clock change that is no longer needed
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

// addSubmission adds one submission to the batch or answers it.
func (p *ledgerBatch) addSubmission(s *submission, now id.Instant) {
	tail := &p.ledger.tail
	if s.configVersion != tail.head.ConfigVersion || !s.Clock.isCurrent(tail.head, s.arrived) {
		s.askAgain()
		return
	}
	erased := s.countErased()
	if erased > 0 && p.erased > 0 { // together with another submission they may exceed storage.MaxErased
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

// claimKeys claims the deduplication keys of a submission. It reports true, and claims none, if one of them belongs to an
// event in flight.
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

// releaseSince releases all claimed keys except the first n.
func (p *ledgerBatch) releaseSince(n int) {
	p.releaseKeys(p.claimedKeys[n:])
	p.claimedKeys = p.claimedKeys[:n]
}

func (p *ledgerBatch) releaseKeys(names []storage.DedupKey) {
	for _, n := range names {
		delete(p.ledger.takenKeys, n)
	}
}

// yieldKeys yields the deduplication keys of the draft. No other event of the ledger may have them.
func (d *Draft) yieldKeys(yield func(storage.DedupKey) bool) {
	switch {
	case !yield(storage.DedupKey{Text: string(d.ID)}):
	case d.IdempotencyKey != "":
		yield(storage.DedupKey{Idempotency: true, Text: d.IdempotencyKey})
	case d.keyDigest != storage.KeyDigest{}:
		yield(storage.DedupKey{Idempotency: true, Digest: d.keyDigest})
	}
}

// listChanges returns the changes of a submission if its first event is at index begin.
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

// countDrafts counts the drafts of one submission. It reports false, and counts none, if a cap is reached.
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

// putMonthCounter adds the counter of a month to the batch if the batch changed it. A batch changes the counters of
// several months only at the turn of a month or during an import.
func (p *ledgerBatch) putMonthCounter(u usage) {
	if u != p.usedBefore {
		p.setCounter(storage.Counter{Name: u.month.CounterName(), Value: u.count})
	}
}

// setCounter adds a counter to the batch, or replaces its value there.
func (p *ledgerBatch) setCounter(c storage.Counter) {
	if i := slices.IndexFunc(p.batch.Counters, func(was storage.Counter) bool { return was.Name == c.Name }); i >= 0 {
		p.batch.Counters[i] = c
		return
	}
	p.batch.Counters = append(p.batch.Counters, c)
}

// appendEvent gives a draft its index and adds it to the chain, the tree and the batch.
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

// makeReceipts returns the receipts of a sent submission whose first event is Events[first] of the batch.
func (p *ledgerBatch) makeReceipts(first int, s *submission, chainValid bool) []Receipt {
	receipts := slices.Grow(s.receipt[:0], len(s.Drafts))
	for i := range s.Drafts {
		e := &p.batch.Events[first+i]
		receipts = append(receipts, Receipt{Index: e.Index, ReceivedAt: e.ReceivedAt, EventHash: p.eventHashAt(first + i), ChainValid: chainValid, Decided: s.Drafts[i].decided})
	}
	return receipts
}

// eventHashAt returns the event hash of Events[i]: the next event links to it, or else the head does.
func (p *ledgerBatch) eventHashAt(i int) id.Hash {
	if i+1 < len(p.batch.Events) {
		return p.batch.Events[i+1].Entry.Prev
	}
	return p.batch.Head.Last
}
