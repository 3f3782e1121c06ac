package log

import "github.com/agentledger/agentledger/storage"

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
