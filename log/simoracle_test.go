package log_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/test/ledgertest"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// oracle says what must hold. It reads what took effect in the store and what
// callers were told, and shares no code with the sequencer: hashes, roots and
// counts are worked out here.
type oracle struct {
	seen    int // applied batches looked at
	ledgers map[id.Tenant]*oracleLedger
	fault   func(format string, args ...any)
}

type oracleLedger struct {
	events   []oracleEvent
	last     id.Hash
	roots    map[id.Index]id.Hash // after each append
	versions int                  // reconfigurations
	counted  map[string]uint64    // by month
	heads    []storage.Head
}

type oracleEvent struct {
	name, key string
	ticket    string // the submission that it came with
	leaf      id.Hash
	received  id.Instant
	system    bool     // a statement of the service
	erasedBy  id.Index // 0: it has its envelope
}

func newOracle(fault func(string, ...any)) *oracle {
	return &oracle{ledgers: map[id.Tenant]*oracleLedger{}, fault: fault}
}

// replay works out the ledgers from what took effect.
func (o *oracle) replay(applied []storage.Batch) {
	if o.seen > len(applied) { // a crash took some
		o.seen, o.ledgers = 0, map[id.Tenant]*oracleLedger{}
	}
	for ; o.seen < len(applied); o.seen++ {
		o.apply(&applied[o.seen])
	}
}

func (o *oracle) ledger(t id.Tenant) *oracleLedger {
	if o.ledgers[t] == nil {
		genesis := sha256.Sum256([]byte("agentledger/genesis/v1\n" + string(ledgertest.Genesis(t).Origin) + "\n"))
		o.ledgers[t] = &oracleLedger{last: genesis, roots: map[id.Index]id.Hash{}, counted: map[string]uint64{}}
	}
	return o.ledgers[t]
}

func (o *oracle) apply(b *storage.Batch) {
	l := o.ledger(b.Tenant)
	for i := range b.Events {
		o.event(b.Tenant, l, &b.Events[i])
	}
	l.roots[id.Index(len(l.events))] = naiveRoot(l.events)
	l.heads = append(l.heads, b.Head)
	if int(b.Head.Size) != len(l.events) || b.Head.Root != l.roots[b.Head.Size] || b.Head.Last != l.last {
		o.fault("tenant %d: head at %d is not that of its events", b.Tenant, b.Head.Size)
	}
	if b.Head.ConfigVersion != uint64(1+l.versions) {
		o.fault("tenant %d: config version %d after %d changes", b.Tenant, b.Head.ConfigVersion, l.versions)
	}
	for _, c := range b.Counters {
		if l.counted[c.Name] != c.Value {
			o.fault("tenant %d: counter %s is %d with %d events", b.Tenant, c.Name, c.Value, l.counted[c.Name])
		}
	}
}

func (o *oracle) event(t id.Tenant, l *oracleLedger, e *storage.Event) {
	r, err := event.ParseRecord(e.Record)
	if err != nil {
		o.fault("tenant %d: record %d: %v", t, e.Index, err)
		return
	}
	var version, ticket, limit int
	var kind string
	corrects := e.ActionKind == log.ClockKind
	erases := e.ActionKind == event.KindErasure
	switch {
	case erases:
		_, err = fmt.Sscanf(string(e.Envelope[bytes.Index(e.Envelope, []byte(`"reason":"`))+10:]), erasureFormat, &version, &ticket)
	case corrects:
		kind = "last-of-change"
		_, err = fmt.Sscanf(string(e.Envelope[bytes.Index(e.Envelope, []byte("version=")):]), correctionFormat, &version, &ticket)
	default:
		_, err = fmt.Sscanf(r.IngestKeyID, "version=%d ticket=%d kind=%s cap=%d", &version, &ticket, &kind, &limit)
	}
	if err != nil {
		o.fault("tenant %d: ingest key %q: %v", t, r.IngestKeyID, err)
	}
	if version != 1+l.versions {
		o.fault("tenant %d: event %d was prepared under version %d and landed under %d", t, e.Index, version, 1+l.versions)
	}
	if kind == "last-of-change" {
		l.versions++
	}
	for _, other := range l.events {
		if other.name == string(e.ID) || (other.key != "" && other.key == e.IdempotencyKey) {
			o.fault("tenant %d: event %d has a name of an earlier one: %s, %s", t, e.Index, e.ID, e.IdempotencyKey)
		}
	}
	if n := len(l.events); int(e.Index) != n || r.SequenceNum != uint64(n+1) || e.Entry.Prev != l.last || (n > 0 && l.events[n-1].received > e.ReceivedAt) != corrects {
		o.fault("tenant %d: event %d does not follow the one before", t, e.Index)
	}
	month := "events/" + e.ReceivedAt.String()[:7]
	switch {
	case erases:
	case !corrects:
		l.counted[month]++
	default:
		for later := range l.counted {
			if later > month {
				l.counted[later] = 0
			}
		}
	}
	if limit > 0 && l.counted[month] > uint64(limit) {
		o.fault("tenant %d: event %d is number %d of %d in its month", t, e.Index, l.counted[month], limit)
	}
	text := fmt.Sprintf(`{"prev":"%s","record":"%x","seq":%d,"v":1}`, l.last, sha256.Sum256(e.Record), e.Index+1)
	l.last = sha256.Sum256([]byte("\x00" + text))
	l.events = append(l.events, oracleEvent{
		name: string(e.ID), key: e.IdempotencyKey, ticket: fmt.Sprint(ticket), leaf: l.last, received: e.ReceivedAt,
		system: erases || corrects,
	})
	for _, r := range e.Erases {
		for i := r.Begin; i < r.End; i++ {
			if l.events[i].erasedBy == 0 {
				l.events[i].erasedBy = e.Index
			}
		}
	}
}

// naiveRoot is RFC 6962, section 2.1, word for word.
func naiveRoot(events []oracleEvent) id.Hash {
	switch len(events) {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		return events[0].leaf
	}
	k := 1
	for 2*k < len(events) {
		k *= 2
	}
	left, right := naiveRoot(events[:k]), naiveRoot(events[k:])
	return sha256.Sum256([]byte("\x01" + string(left[:]) + string(right[:])))
}

// published checks that what readers see is durable.
func (o *oracle) published(t id.Tenant, s *log.State, durable *oracle) {
	l := durable.ledger(t)
	if root, ok := l.roots[s.Size()]; !ok || root != s.Root() {
		o.fault("tenant %d: the published state at %d is not durable, or another", t, s.Size())
	}
	if s.Fault().Level != log.Healthy {
		o.fault("tenant %d: fault %+v", t, s.Fault())
	}
}

// landed checks that a submission is in the ledger whole and as its caller was
// told. In a store that broke since then nothing is read back any more.
func (l *oracleLedger) landed(t *ticket, receipts []log.Receipt, broken bool) string {
	if len(receipts) != len(t.names) {
		return "number of receipts"
	}
	for i, r := range receipts {
		switch {
		case int(r.Index) >= len(l.events) || r.Index != receipts[0].Index+id.Index(i):
			return "index"
		case l.events[r.Index].name != t.names[i] || l.events[r.Index].ticket != fmt.Sprint(t.number):
			return "event"
		case l.events[r.Index].leaf != r.EventHash || l.events[r.Index].received != r.ReceivedAt || !r.ChainValid && !broken:
			return "receipt"
		}
	}
	return ""
}

// knows reports whether one of the names belongs to an event.
func (l *oracleLedger) knows(t *ticket) bool {
	for _, e := range l.events {
		for _, name := range t.names {
			if e.name == name || (e.key != "" && e.key == keyOf(name)) {
				return true
			}
		}
	}
	return false
}

// count returns how many events came with a submission.
func (l *oracleLedger) count(t *ticket) (n int) {
	for _, e := range l.events {
		if e.ticket == fmt.Sprint(t.number) {
			n++
		}
	}
	return n
}

// keyOf is the idempotency key that an event is sent with: x7 comes with that of e7.
func keyOf(name string) string { return "key-" + name[1:] }
