package index

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/records"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// dueEnd returns the end of the events that the next write indexes: whole chunks of the block at position. If it is
// position, nothing is due.
func dueEnd(position, size id.Index) id.Index {
	whole := size - size%chunkEvents
	return max(position, min(whole, position-position%blockEvents+blockEvents))
}

// value is a term before it is hashed.
type value struct {
	field field
	text  string
}

// posting contains the places of a term that occurs often, in ascending order.
type posting struct {
	term
	places []uint16
}

func (p *posting) addPlace(place uint16) {
	if n := len(p.places); n == 0 || p.places[n-1] != place {
		p.places = append(p.places, place)
	}
}

// builder indexes the events of a part of one block.
type builder struct {
	rows    []Row
	parts   []part   // of rows
	columns [][]byte // of complete chunks
	known   map[value]*posting
	terms   map[term]*posting
	singles []uint64 // bucket, fingerprint and place of each event's trace and hash
}

func newBuilder() *builder {
	return &builder{known: make(map[value]*posting), terms: make(map[term]*posting)}
}

// addRow indexes a row. The rows of a builder belong to one block and are in ascending order.
func (b *builder) addRow(r Row, p part) {
	place := uint16(r.Index % blockEvents)
	if p.approval != "" {
		b.addSingle(newTerm(byApproval, p.approval), place)
	}
	if p.role == roleAct && p.step != (stepName{}) {
		b.addSingle(newTerm(byStep, string(p.step[:])), place)
	}
	r.visitTerms(func(f field, text string) {
		if f.single() {
			b.addSingle(newTerm(f, text), place)
			return
		}
		p, known := b.known[value{f, text}]
		if !known {
			p = b.postingOf(newTerm(f, text))
			b.known[value{f, text}] = p
		}
		p.addPlace(place)
	})
	b.rows, b.parts = append(b.rows, r), append(b.parts, p)
}

// endChunk adds the columns of the rows since the last chunk.
func (b *builder) endChunk() {
	b.columns = append(b.columns, columnsOf(b.rows).encode())
	b.rows, b.parts = b.rows[:0], b.parts[:0]
}

func (b *builder) postingOf(t term) *posting {
	p, known := b.terms[t]
	if !known {
		p = &posting{term: t}
		b.terms[t] = p
	}
	return p
}

// addSingle adds a place of a term that occurs in few events. The numbers sort like terms and places.
func (b *builder) addSingle(t term, place uint16) {
	b.singles = append(b.singles, uint64(t.bucket)<<48|uint64(t.fingerprint)<<16|uint64(place))
}

// addRecent indexes a record of the latest postings. The records of a group must be added in ascending order, before
// any rows.
func (b *builder) addRecent(record []byte) error {
	for len(record) > 0 {
		section, entries, rest, err := cutSection(record)
		if err != nil {
			return err
		}
		t := term{single: section&singleSection != 0, bucket: section &^ singleSection}
		for len(entries) > 0 {
			var e postingEntry
			if e, entries, err = cutEntry(entries); err != nil {
				return err
			}
			t.fingerprint = e.Fingerprint
			if err := b.addEntry(t, e); err != nil {
				return err
			}
		}
		record = rest
	}
	return nil
}

func (b *builder) addEntry(t term, e postingEntry) error {
	if t.single {
		return e.VisitPlaces(func(place uint16) { b.addSingle(t, place) })
	}
	return e.VisitPlaces(b.postingOf(t).addPlace)
}

// visitBuckets calls visit with the entries of each bucket in ascending order. t is one of the bucket's terms.
func (b *builder) visitBuckets(visit func(t term, entries []byte)) {
	var of term
	var entries []byte
	add := func(t term, places []uint16) {
		if len(entries) > 0 && (t.single != of.single || t.bucket != of.bucket) {
			visit(of, entries)
			entries = nil
		}
		of, entries = t, appendEntry(entries, t.fingerprint, places)
	}
	terms := make([]*posting, 0, len(b.terms))
	for _, p := range b.terms {
		terms = append(terms, p)
	}
	slices.SortFunc(terms, func(a, b *posting) int { return a.compare(b.term) })
	for _, p := range terms {
		add(p.term, p.places)
	}
	slices.Sort(b.singles)
	var places []uint16
	for i, n := range b.singles {
		if places = append(places, uint16(n)); i+1 == len(b.singles) || b.singles[i+1]>>16 != n>>16 {
			add(term{true, uint16(n >> 48), uint32(n >> 16)}, slices.Compact(places))
			places = places[:0]
		}
	}
	if len(entries) > 0 {
		visit(of, entries)
	}
}

// buildChanges returns the changes that index the events [g.Position, end) of a ledger in a generation, and the time of
// the last event.
func (x *Index) buildChanges(ctx context.Context, s *log.State, g generation, end id.Index) (
	changes []storage.Change, newest id.Instant, err error) {
	b, t := newBuilder(), s.Identity().Tenant
	whole := end%blockEvents == 0
	if whole && g.Position%blockEvents != 0 {
		if changes, err = x.replaceRecent(ctx, t, g, b); err != nil {
			return nil, 0, err
		}
	}
	acts := x.newJoiner(s, &view{tenant: t, generation: g, position: g.Position, end: g.Position})
	for begin := g.Position; begin < end; begin += chunkEvents {
		found := newValues(g.Columns)
		for e, err := range x.ledgers.Events(ctx, s, begin, begin+chunkEvents, allParts|storage.FieldLent) {
			if err != nil {
				return nil, 0, fmt.Errorf("read events: %w", err)
			}
			row, p, err := newRowAndPart(&e)
			if err != nil {
				return nil, 0, err
			}
			b.addRow(row, p)
			if p.role == roleAct {
				found.add(e.Index, readCells(e.Envelope, g.Columns), g.Columns)
			}
			newest = e.ReceivedAt
		}
		if got := len(b.rows); got != chunkEvents {
			return nil, 0, fmt.Errorf("read events: %w: %d events of a chunk", storage.ErrCorrupt, got)
		}
		if err := acts.join(ctx, b.rows, b.parts); err != nil {
			return nil, 0, err
		}
		b.endChunk()
		if record := found.encode(begin); record != nil {
			changes = append(changes, storage.Change{Kind: kindValues, If: storage.AnyVersion,
				Key: columnsKey(g.Number, uint64(begin)/chunkEvents), Value: record})
		}
	}
	if changes, err = acts.appendActs(ctx, changes, g.Position, end); err != nil {
		return nil, 0, err
	}
	for i, record := range b.columns {
		chunk := uint64(g.Position)/chunkEvents + uint64(i)
		changes = append(changes, storage.Change{Kind: kindColumns, If: storage.AnyVersion,
			Key: columnsKey(g.Number, chunk), Value: record})
	}
	if whole {
		return b.appendBlock(changes, g), newest, nil
	}
	return b.appendRecent(changes, g), newest, nil
}

// appendBlock appends the changes that write the postings of a complete block.
func (b *builder) appendBlock(changes []storage.Change, g generation) []storage.Change {
	block := uint64(g.Position) / blockEvents
	b.visitBuckets(func(t term, entries []byte) {
		changes = append(changes, storage.Change{Kind: t.kind(), Key: recordKey(g.Number, t.bucket, block),
			Value: entries, If: storage.AnyVersion})
	})
	return changes
}

// appendRecent appends the changes that write the postings of the latest chunks, as one part.
func (b *builder) appendRecent(changes []storage.Change, g generation) []storage.Change {
	var groups [1 << recentBits][]byte
	b.visitBuckets(func(t term, entries []byte) {
		groups[t.group()] = appendSection(groups[t.group()], t.section(), entries)
	})
	for n, record := range groups {
		if record != nil {
			changes = append(changes, storage.Change{Kind: kindRecent, If: storage.AnyVersion,
				Key: recordKey(g.Number, uint16(n), uint64(g.Position)/chunkEvents), Value: record})
		}
	}
	return changes
}

// replaceRecent adds the latest postings of the block at a position to b, and returns the changes that delete them.
func (x *Index) replaceRecent(ctx context.Context, t id.Tenant, g generation, b *builder) ([]storage.Change, error) {
	var changes []storage.Change
	for group := range uint16(1 << recentBits) {
		found, err := x.scanRecent(ctx, t, g, group)
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if err := b.addRecent(r.Value); err != nil {
				return nil, err
			}
			changes = append(changes, storage.Change{Kind: kindRecent, Key: r.Key, If: storage.AnyVersion})
		}
	}
	return changes, nil
}

// scanRecent returns the records of a group for the block at a position, in ascending order.
func (x *Index) scanRecent(ctx context.Context, t id.Tenant, g generation, group uint16) ([]storage.Record, error) {
	const chunks = blockEvents / chunkEvents
	first := uint64(g.Position) / blockEvents * chunks
	found, err := x.store.Scan(ctx, t, kindRecent, recordKey(g.Number, group, first),
		recordKey(g.Number, group, first+chunks), chunks)
	if err != nil {
		return nil, fmt.Errorf("read newest postings: %w", err)
	}
	return found, nil
}

// dropAtOnce is the number of records below a generation that one write deletes.
const dropAtOnce = 512

// dropChanges returns the changes that delete records below a generation, and reports whether these were the last ones.
func (x *Index) dropChanges(ctx context.Context, t id.Tenant, number uint64) ([]storage.Change, bool, error) {
	var changes []storage.Change
	for _, kind := range []storage.Kind{kindPostings, kindSingles, kindMerged, kindRecent,
		kindColumns, kindActs, kindValues} {
		r := records.Range{End: generationPrefix(number)}
		for found, err := range records.Scan(ctx, x.store, t, kind, r, dropAtOnce) {
			if err != nil {
				return nil, false, fmt.Errorf("read dropped index: %w", err)
			}
			changes = append(changes, storage.Change{Kind: kind, Key: found.Key, If: storage.AnyVersion})
			if len(changes) == dropAtOnce {
				return changes, false, nil
			}
		}
	}
	return changes, true, nil
}
