package log

import (
	"iter"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/trace"
	"github.com/agentledger/agentledger/storage"
	"github.com/agentledger/agentledger/tlog"
)

// part is one ledger's share of an append.
type part struct {
	ledger   *ledger
	stream   *stream
	prior    *part         // of the ledger in another stream, which is to land before; guarded by queue.mu
	landed   bool          // guarded by queue.mu
	subs     []*submission // taken from the queue
	sent     []*submission // those whose events are in the batch
	late     []*submission // duplicates of what is out: answered when this part lands
	batch    storage.Batch
	texts    []byte // the records of the batch's events, one behind the other
	state    *State // published when the batch is durable
	names    []storage.DedupKey
	counters []counter           // that the part's events add to
	used     usage               // the ledger's counter before this part
	before   storage.EntryResult // the entry before the batch, as it was read back
	err      error               // why it did not land
	anchored bool                // the anchor of state is written
	last     bool                // when it ended nothing else of its ledger was out
}

// flight is an append that is out. pending is nil when it has no batch.
type flight struct {
	round   *appendRound
	stream  *stream
	parts   []*part // those with a batch first, in the batches' order
	batches int
	pending storage.Pending
	span    trace.Span // of handing it to the engine until it is durable
}

// sequence is the one goroutine that gives numbers. While it builds an append,
// the one before it is being synced.
func (l *Ledgers) sequence() {
	for r := l.queue.take(); r != nil; r = l.queue.take() {
		for f := range l.launch(r) {
			if f.stream.flights == nil {
				f.stream.flights = make(chan flight, appendsOut)
				l.done.Go(func() { l.finish(f.stream.flights) })
			}
			f.stream.flights <- f // never waits: see appendRound.join
		}
	}
	for _, s := range l.queue.streams {
		if s != nil && s.flights != nil {
			close(s.flights)
		}
	}
}

// launch builds the appends of a round and hands each to the engine.
func (l *Ledgers) launch(r *appendRound) iter.Seq[flight] {
	reserve(r.parts)
	now := id.InstantOf(l.clock())
	return func(yield func(flight) bool) {
		for parts := range r.byStream() {
			if !yield(l.send(r, parts, now)) {
				return
			}
		}
	}
}

// send builds the append of one stream and hands it to the engine.
func (l *Ledgers) send(r *appendRound, parts []*part, now id.Instant) flight {
	f := flight{round: r, stream: parts[0].stream, parts: make([]*part, 0, len(parts))}
	batches := make([]storage.Batch, 0, len(parts))
	var empty []*part
	for _, p := range parts {
		p.build(now, l.checkEarly(p.ledger.identity, p.ledger.tail.head.LastReceived, now))
		if len(p.sent) == 0 {
			empty = append(empty, p)
			continue
		}
		f.parts = append(f.parts, p)
		batches = append(batches, p.batch)
	}
	f.batches = len(batches)
	f.parts = append(f.parts, empty...)
	if len(batches) > 0 {
		f.span = l.tracer.StartLinkedSpan("commit", links(l.tracer, f.parts))
		f.pending = l.store.Append(batches)
		l.metrics.batch(batches)
	}
	return f
}

// build turns a part's submissions into a batch on the ledger's tail. What
// can't go is answered here, but for duplicates of what is still out. early is why
// the ledger takes no events at now, nil when it does.
func (p *part) build(now id.Instant, early error) {
	led := p.ledger
	tail := &led.tail
	p.batch.Tenant, p.batch.Expect = led.identity.Tenant, tail.head
	p.used = tail.used
	if err := led.published.Load().Trusted(); err != nil {
		for _, s := range p.subs {
			s.refuse(err)
		}
		return
	}
	led.namesMu.Lock()
	if led.names == nil {
		led.names = make(map[storage.DedupKey]struct{})
	}
	for _, s := range p.subs {
		switch {
		case s.arrived, (early != nil) == (s.Clock != nil):
			p.admit(s, now)
		case early != nil:
			s.refuse(early)
		default: // it is not early any more
			s.sendBack()
		}
	}
	led.namesMu.Unlock()
	if len(p.sent) == 0 {
		return
	}
	tail.head.Root = tail.tree.Root()
	p.count(tail.used)
	p.putCounters()
	p.batch.Head = tail.head
	p.state = &State{
		identity: led.identity, keys: led.keys.Load(), head: tail.head,
		tree: tail.tree.Clone(), used: tail.used, fault: led.published.Load().fault,
	}
}

// admit puts one submission into the batch, or answers it.
func (p *part) admit(s *submission, now id.Instant) {
	tail := &p.ledger.tail
	if s.configVersion != tail.head.ConfigVersion || s.Clock != nil && s.Clock.Before != tail.head.LastReceived {
		s.sendBack()
		return
	}
	claimed := len(p.names)
	if p.taken(s) {
		p.late = append(p.late, s)
		return
	}
	received := max(now, tail.head.LastReceived)
	switch {
	case s.arrived:
		received = s.received
	case s.Clock != nil:
		received = s.Clock.At
	}
	changes, err := s.changes(tail.head.Size)
	if err != nil {
		p.unclaim(claimed)
		s.refuse(err)
		return
	}
	if s.Clock != nil {
		p.correct(s.Clock)
	}
	before := tail.used
	if !tail.used.admit(monthOf(received), s.Drafts) {
		p.unclaim(claimed)
		s.refuse(&fault.Error{Kind: fault.PlanLimit, Code: "plan_limit", Message: "Monthly event limit reached"})
		return
	}
	if before.month != tail.used.month {
		p.count(before)
	}
	item := len(p.sent)
	p.sent = append(p.sent, s)
	for i := range s.Drafts {
		p.append(&s.Drafts[i], received, item)
	}
	for _, c := range changes {
		c.Item = item
		p.batch.Changes = append(p.batch.Changes, c)
	}
	if s.Reconfigures {
		tail.head.ConfigVersion++
	}
}

// changes are those of a submission whose first event is at begin.
func (s *submission) changes(begin id.Index) ([]storage.Change, error) {
	if s.Clock != nil {
		return append(slices.Clip(s.Changes), s.Clock.limits...), nil
	}
	if s.Keys == nil {
		return s.Changes, nil
	}
	keys, err := s.Keys.at(begin + id.Index(len(s.Drafts)))
	return append(slices.Clip(s.Changes), keys), err
}

// count puts a month's counter into the batch, if the part moved it. Only events
// that arrive from another store can move those of several months.
func (p *part) count(u usage) {
	if u != p.used {
		p.setCounter(storage.Counter{Name: u.month.counter(), Value: u.count})
	}
}

// setCounter puts a counter into the batch, in place of what it was there.
func (p *part) setCounter(c storage.Counter) {
	i := slices.IndexFunc(p.batch.Counters, func(was storage.Counter) bool { return was.Name == c.Name })
	if i < 0 {
		p.batch.Counters = append(p.batch.Counters, c)
		return
	}
	p.batch.Counters[i] = c
}

// taken claims the names of a submission, or reports that one of them belongs
// to an event that is out.
func (p *part) taken(s *submission) bool {
	claimed := len(p.names)
	for i := range s.Drafts {
		for n := range s.Drafts[i].names {
			if _, out := p.ledger.names[n]; out {
				p.unclaim(claimed)
				return true
			}
			p.ledger.names[n] = struct{}{}
			p.names = append(p.names, n)
		}
	}
	return false
}

// unclaim gives back the names claimed since there were n.
func (p *part) unclaim(n int) {
	p.release(p.names[n:])
	p.names = p.names[:n]
}

func (p *part) release(names []storage.DedupKey) {
	for _, n := range names {
		delete(p.ledger.names, n)
	}
}

// names yields what the draft must not share with any other event.
func (d *Draft) names(yield func(storage.DedupKey) bool) {
	switch {
	case !yield(storage.DedupKey{Text: string(d.ID)}):
	case d.IdempotencyKey != "":
		yield(storage.DedupKey{Idempotency: true, Text: d.IdempotencyKey})
	case d.keyDigest != storage.KeyDigest{}:
		yield(storage.DedupKey{Idempotency: true, Digest: d.keyDigest})
	}
}

// admit counts the drafts of one submission, all or none.
func (u *usage) admit(m month, drafts []Draft) bool {
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

// append gives a draft its number and place in chain and tree.
func (p *part) append(d *Draft, received id.Instant, item int) {
	tail := &p.ledger.tail
	head := &tail.head
	if len(d.Claims) > 0 {
		p.decide(d, received, item)
	}
	begin := len(p.texts)
	p.texts = d.Record.AppendTo(p.texts, received, head.Size.Sequence())
	record := p.texts[begin:len(p.texts):len(p.texts)]
	entry := event.Entry{Prev: head.Last, Record: event.RecordHash(record), Seq: head.Size.Sequence()}
	columns := d.Columns
	columns.ReceivedAt = received
	p.batch.Events = append(p.batch.Events, storage.Event{
		Index: head.Size, ID: d.ID, Entry: storage.Entry{Prev: entry.Prev, Record: entry.Record},
		Columns: columns, Record: record, Envelope: d.Envelope,
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

// receipts returns what the events of a sent submission are told, beginning at
// event number first of the batch.
func (p *part) receipts(first int, drafts []Draft, chainValid bool) []Receipt {
	receipts := make([]Receipt, len(drafts))
	for i := range receipts {
		e := &p.batch.Events[first+i]
		receipts[i] = Receipt{Index: e.Index, ReceivedAt: e.ReceivedAt, EventHash: p.eventHash(first + i), ChainValid: chainValid, Decided: drafts[i].decided}
	}
	return receipts
}

// eventHash returns the event hash of the batch's event at i: what the next
// one, or the head, names.
func (p *part) eventHash(i int) id.Hash {
	if i+1 < len(p.batch.Events) {
		return p.batch.Events[i+1].Entry.Prev
	}
	return p.batch.Head.Last
}
