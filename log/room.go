package log

import "github.com/agentledger/agentledger/storage"

// room is the memory of one append, made in a few pieces for all of its parts:
// with hundreds of organizations in an append, pieces for each would cost more
// than what is put into them.
type room struct {
	events   []storage.Event
	texts    []byte
	names    []storage.DedupKey
	counters []storage.Counter
	sent     []*submission
}

// need is how much of a room a part may take.
type need struct{ drafts, text, subs int }

func (p *part) need() (n need) {
	n.subs = len(p.subs)
	for _, s := range p.subs {
		n.drafts += len(s.Drafts)
		for i := range s.Drafts {
			n.text += s.Drafts[i].Record.Len()
		}
	}
	return n
}

// reserve gives each part room for all that it may become.
func reserve(parts []*part) {
	var all need
	for _, p := range parts {
		n := p.need()
		all.drafts, all.text, all.subs = all.drafts+n.drafts, all.text+n.text, all.subs+n.subs
	}
	const namesEach, countersEach = 2, 1
	r := room{
		events: make([]storage.Event, all.drafts), texts: make([]byte, all.text), names: make([]storage.DedupKey, namesEach*all.drafts),
		counters: make([]storage.Counter, countersEach*len(parts)), sent: make([]*submission, all.subs),
	}
	for _, p := range parts {
		n := p.need()
		p.batch.Events, r.events = cut(r.events, n.drafts)
		p.texts, r.texts = cut(r.texts, n.text)
		p.names, r.names = cut(r.names, namesEach*n.drafts)
		p.batch.Counters, r.counters = cut(r.counters, countersEach)
		p.sent, r.sent = cut(r.sent, n.subs)
	}
}

// cut takes the first n places off s, as an empty slice that grows into them and
// no further.
func cut[T any](s []T, n int) (first, rest []T) { return s[:0:n], s[n:] }
