package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/klauspost/compress/s2"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// acts are acts of one chunk, in ascending order.
type acts []act

func (a acts) search(at id.Index) (int, bool) {
	return slices.BinarySearchFunc(a, at, func(a act, at id.Index) int { return cmp.Compare(a.at, at) })
}

// put adds an act, or replaces the one at the same index.
func (a acts) put(changed act) acts {
	at, found := a.search(changed.at)
	if found {
		a[at] = changed
		return a
	}
	return slices.Insert(a, at, changed)
}

// changedActs are acts of one chunk that differ from those of the chunk's record.
type changedActs struct {
	acts
	end id.Index // the event after the latest one that changed an act
}

// joiner joins events to acts, in the order of the ledger: the acts of these events, and earlier ones that they change.
type joiner struct {
	index *Index
	state *log.State
	view  *view // of the indexed events, with the acts and approvals of the tail before the joined events

	changed   map[uint64]*changedActs // by chunk
	before    map[id.Index]act        // the acts that the joined results name, as in the view
	events    map[id.Event]id.Index   // the acts among the joined events and those that they name
	approvals map[string]*approvalOf
}

// approvalOf is an approval as far as it has been read.
type approvalOf struct {
	name    string
	consent consent
	votes   []Vote
	act     id.Index // the act that it belongs to
	linked  bool     // act is known
	end     id.Index // the event after its latest transition
}

func (x *Index) newJoiner(s *log.State, v *view) *joiner {
	return &joiner{index: x, state: s, view: v, changed: make(map[uint64]*changedActs),
		events: make(map[id.Event]id.Index), approvals: make(map[string]*approvalOf)}
}

// join joins the next rows with what they say about acts.
func (j *joiner) join(ctx context.Context, rows []Row, parts []part) error {
	if len(rows) == 0 {
		return nil
	}
	for i := range rows {
		if parts[i].role == roleAct {
			j.events[rows[i].Event] = rows[i].Index
		}
	}
	if err := j.locate(ctx, parts); err != nil {
		return err
	}
	var err error
	if j.before, err = j.readBefore(ctx, j.named(nil, parts), rows[0].Index); err != nil {
		return err
	}
	for i := range rows {
		if err := j.joinRow(ctx, &rows[i], &parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// locate finds the acts that parts name.
func (j *joiner) locate(ctx context.Context, parts []part) error {
	unknown := make(map[id.Event]struct{})
	for i := range parts {
		if of := parts[i].intent; of != "" {
			if _, known := j.events[of]; !known {
				unknown[of] = struct{}{}
			}
		}
	}
	for names := range slices.Chunk(slices.Sorted(maps.Keys(unknown)), chunkEvents) {
		at, err := j.index.ledgers.Locate(ctx, j.state, names)
		if err != nil {
			return err
		}
		for i := range names {
			if at[i] != storage.NoIndex {
				j.events[names[i]] = at[i]
			}
		}
	}
	return nil
}

// named appends the acts that parts name.
func (j *joiner) named(at []id.Index, parts []part) []id.Index {
	for i := range parts {
		if of, known := j.events[parts[i].intent]; known {
			at = append(at, of)
		}
	}
	return at
}

// readBefore returns the acts at indices before end, as in the view. It reads each record once.
func (j *joiner) readBefore(ctx context.Context, at []id.Index, end id.Index) (map[id.Index]act, error) {
	before := make(map[id.Index]act)
	slices.Sort(at)
	for len(at) > 0 && at[0] < end {
		chunk := uint64(at[0]) / chunkEvents
		read, err := j.index.readActs(ctx, j.view, chunk)
		if err != nil {
			return nil, err
		}
		for len(at) > 0 && uint64(at[0])/chunkEvents == chunk {
			if i, found := read.search(at[0]); found {
				before[at[0]] = read[i]
			}
			at = at[1:]
		}
	}
	return before, nil
}

func (j *joiner) joinRow(ctx context.Context, r *Row, p *part) error {
	switch p.role {
	case roleAct:
		return j.addAct(ctx, r, p, r.Index)
	case roleResult:
		return j.change(ctx, p.intent, r.Index, func(a *act) {
			if a.result == 0 { // later ones say nothing new
				a.status, a.result = p.status, r.Index
			}
		})
	case roleApproval:
		if p.first { // nothing was said about it before
			j.approvals[p.approval] = &approvalOf{name: p.approval}
		}
		a, err := j.approval(ctx, p.approval)
		if err != nil {
			return err
		}
		a.take(p, r.Index)
		if at, known := j.events[p.intent]; known && !a.linked {
			a.act, a.linked = at, true
		}
		return j.decide(ctx, a, r.Index)
	case roleErasure:
		return j.erase(ctx, p.erased, r.Index)
	}
	return nil
}

// addAct adds the act of a row.
func (j *joiner) addAct(ctx context.Context, r *Row, p *part, by id.Index) error {
	j.put(act{at: r.Index, effective: r.Effective, claimed: p.claimed, erased: r.ErasedBy != 0, status: p.status}, by)
	if p.approval == "" {
		return nil
	}
	a, err := j.approval(ctx, p.approval)
	if err != nil {
		return err
	}
	a.act, a.linked, a.end = r.Index, true, max(a.end, by+1)
	return j.decide(ctx, a, by)
}

// take takes in the next transition.
func (a *approvalOf) take(p *part, at id.Index) {
	a.consent, a.end = p.consent, at+1
	if p.vote.Account != "" {
		a.votes = append(slices.Clip(a.votes), p.vote)
	}
}

// change changes the act of an event. by is the event that tells of the change.
func (j *joiner) change(ctx context.Context, of id.Event, by id.Index, change func(*act)) error {
	at, known := j.events[of]
	if !known {
		return nil
	}
	return j.changeAt(ctx, at, by, change)
}

func (j *joiner) changeAt(ctx context.Context, at, by id.Index, change func(*act)) error {
	a, found, err := j.find(ctx, at)
	if err != nil || !found {
		return err
	}
	change(&a)
	j.put(a, by)
	return nil
}

// put adds or replaces an act.
func (j *joiner) put(a act, by id.Index) {
	n := uint64(a.at) / chunkEvents
	c := j.changed[n]
	if c == nil {
		c = new(changedActs)
		if before := j.view.tail.acts[n]; before != nil {
			c.acts = slices.Clone(before.acts) // readers have the others
		}
		j.changed[n] = c
	}
	c.acts, c.end = c.put(a), by+1
}

// find returns the act at an index.
func (j *joiner) find(ctx context.Context, at id.Index) (a act, found bool, err error) {
	n := uint64(at) / chunkEvents
	if c := j.changed[n]; c != nil {
		if i, found := c.search(at); found {
			return c.acts[i], true, nil
		}
	}
	if a, found = j.before[at]; found {
		return a, true, nil
	}
	read, err := j.index.readActs(ctx, j.view, n)
	if err != nil {
		return act{}, false, err
	}
	i, found := read.search(at)
	if found {
		a = read[i]
	}
	return a, found, nil
}

// decide gives an act the state of its approval.
func (j *joiner) decide(ctx context.Context, of *approvalOf, by id.Index) error {
	if !of.linked {
		return nil
	}
	return j.changeAt(ctx, of.act, by, func(a *act) { a.approval, a.consent, a.votes = of.name, of.consent, of.votes })
}

// approval returns an approval with the transitions before the joined events. The joiner may change it.
func (j *joiner) approval(ctx context.Context, name string) (*approvalOf, error) {
	if a := j.approvals[name]; a != nil {
		return a, nil
	}
	a := &approvalOf{name: name}
	if before := j.view.tail.approvals[name]; before != nil {
		*a = *before
	} else if err := j.readApproval(ctx, a); err != nil {
		return nil, err
	}
	j.approvals[name] = a
	return a, nil
}

// readApproval reads the indexed transitions of an approval, and the act that consumed it.
func (j *joiner) readApproval(ctx context.Context, a *approvalOf) error {
	var of []candidate
	terms := wanted{terms: []term{newTerm(byApproval, a.name)}}
	for c, err := range j.index.candidates(ctx, j.view, terms, []span{{0, j.view.position}}, true) {
		if err != nil {
			return err
		}
		of = append(of, c)
	}
	return j.index.readEvents(ctx, j.state, of, func(_ int, e *storage.Event) error {
		_, p, err := newRowAndPart(e)
		switch {
		case err != nil || p.approval != a.name: // two approvals may have one fingerprint
			return err
		case p.role == roleAct:
			a.act, a.linked = e.Index, true
			return nil
		}
		if a.take(&p, e.Index); p.intent == "" {
			return nil
		}
		if err := j.locate(ctx, []part{p}); err != nil {
			return err
		}
		a.act, a.linked = j.events[p.intent]
		return nil
	})
}

// erase removes what was derived from the envelopes of erased events. An erased event that the policy decided on counts as an act, because its
// phase can't be read any more.
func (j *joiner) erase(ctx context.Context, ranges []id.Range, by id.Index) error {
	var rows []Row
	var parts []part
	var at []id.Index
	for _, r := range ranges {
		for e, err := range j.index.ledgers.Events(ctx, j.state, r.Begin, min(r.End, by), allParts) {
			if err != nil {
				return fmt.Errorf("read erased events: %w", err)
			}
			row, err := newRow(&e)
			if err != nil {
				return err
			}
			if row.Signer == event.SignerSystem { // the service's own events keep their envelopes
				continue
			}
			e.Envelope, e.ErasedBy = nil, by
			row, p, err := newRowAndPart(&e)
			if err != nil {
				return err
			}
			rows, parts, at = append(rows, row), append(parts, p), append(at, e.Index)
		}
	}
	if err := j.locate(ctx, parts); err != nil {
		return err
	}
	named := j.before
	defer func() { j.before = named }()
	var err error
	if j.before, err = j.readBefore(ctx, j.named(at, parts), by); err != nil {
		return err
	}
	for i := range rows {
		if err := j.eraseEvent(ctx, &rows[i], &parts[i], by); err != nil {
			return err
		}
	}
	return nil
}

func (j *joiner) eraseEvent(ctx context.Context, r *Row, p *part, by id.Index) error {
	switch p.role {
	case roleAct:
		a, found, err := j.find(ctx, r.Index)
		if err != nil {
			return err
		}
		if !found {
			return j.addAct(ctx, r, p, by)
		}
		if a.erased = true; a.result == 0 {
			a.status = noStatus
		}
		j.put(a, by)
	case roleResult:
		return j.change(ctx, p.intent, by, func(a *act) {
			if a.result == r.Index {
				a.status = statusUnknown
			}
		})
	}
	return nil
}

// readActs returns the acts of a chunk in a view.
func (x *Index) readActs(ctx context.Context, v *view, chunk uint64) (read acts, err error) {
	if err = x.visitIndexedActs(ctx, v, chunk, func(a *act) { read = append(read, *a) }); err != nil {
		return nil, err
	}
	if c := v.tail.acts[chunk]; c != nil {
		read = read.merge(c.acts)
	}
	return read, nil
}

// visitIndexedActs calls visit with each act in the record of a chunk, as it was at the position of a view.
func (x *Index) visitIndexedActs(ctx context.Context, v *view, chunk uint64, visit func(*act)) error {
	begin := id.Index(chunk * chunkEvents)
	if begin >= v.position {
		return nil
	}
	record, err := x.readRecord(ctx, v.tenant, kindActs, columnsKey(v.generation.Number, chunk))
	if err != nil {
		return fmt.Errorf("read acts: %w", err)
	}
	return damaged(visitActs(record, begin, visit))
}

// findActs returns the acts of a span of one chunk that match. Unless places is nil, they are at these places of the block.
func (x *Index) findActs(ctx context.Context, v *view, s span, places *placeSet, matches func(*act) bool) (found acts, err error) {
	take := func(a *act) {
		if s.begin <= a.at && a.at < s.end && (places == nil || places.Contains(uint16(a.at%blockEvents))) && matches(a) {
			found = append(found, *a)
		}
	}
	chunk := uint64(s.begin) / chunkEvents
	if v.tail.acts[chunk] == nil {
		return found, x.visitIndexedActs(ctx, v, chunk, take)
	}
	all, err := x.readActs(ctx, v, chunk)
	for i := range all {
		take(&all[i])
	}
	return found, err
}

// merge returns a with changed acts, which may be new. It may change a.
func (a acts) merge(changed acts) acts {
	var added acts
	for i := range changed {
		if at, found := a.search(changed[i].at); found {
			a[at] = changed[i]
		} else {
			added = append(added, changed[i])
		}
	}
	if len(added) == 0 {
		return a
	}
	a = append(a, added...)
	slices.SortFunc(a, func(a, b act) int { return cmp.Compare(a.at, b.at) })
	return a
}

// appendActs appends the changes that write the acts of the joined chunks [begin, end), and of earlier ones that changed.
func (j *joiner) appendActs(ctx context.Context, changes []storage.Change, begin, end id.Index) ([]storage.Change, error) {
	for n := uint64(begin) / chunkEvents; n < uint64(end)/chunkEvents; n++ {
		if j.changed[n] == nil {
			j.changed[n] = new(changedActs)
		}
	}
	for n, c := range j.changed {
		before, err := j.index.readActs(ctx, j.view, n)
		if err != nil {
			return nil, err
		}
		changes = append(changes, storage.Change{Kind: kindActs, If: storage.AnyVersion,
			Key: columnsKey(j.view.generation.Number, n), Value: encodeActs(before.merge(c.acts), id.Index(n*chunkEvents))})
	}
	return changes, nil
}

// A record of acts contains the acts of one chunk. It is an s2 block that contains
//
//	a dictionary of accounts: a uvarint count and that many texts
//	acts: difference of index to the one before (uvarint), decision*4 + erased*2 + claimed (byte),
//	status*16 + consent (byte), difference of result to index or 0 (uvarint)
//
// and after them, for an act with a consent, its approval (text), and its votes: a uvarint count and that many
// uvarints, number of the account*2 + approve.

// encodeActs returns the record of acts that follow begin.
func encodeActs(all acts, begin id.Index) []byte {
	var accounts dictionary
	var body []byte
	before := begin
	for i := range all {
		a := &all[i]
		body = binary.AppendUvarint(body, uint64(a.at-before))
		body = append(body, byte(a.effective)<<2|bit(a.erased)<<1|bit(a.claimed), byte(a.status)<<4|byte(a.consent))
		result := uint64(0)
		if a.result != 0 {
			result = uint64(a.result - a.at)
		}
		body = binary.AppendUvarint(body, result)
		if before = a.at; a.consent == noConsent {
			continue
		}
		body = append(binary.AppendUvarint(body, uint64(len(a.approval))), a.approval...)
		body = binary.AppendUvarint(body, uint64(len(a.votes)))
		for _, v := range a.votes {
			body = binary.AppendUvarint(body, accounts.number(v.Account)<<1|uint64(bit(v.Approve)))
		}
	}
	b := binary.AppendUvarint(nil, uint64(len(accounts.texts)))
	for _, text := range accounts.texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = binary.AppendUvarint(b, uint64(len(all)))
	return s2.EncodeBetter(nil, append(b, body...))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// visitActs calls visit with each act of a record. The act is valid during the call.
func visitActs(record []byte, begin id.Index, visit func(*act)) error {
	in, err := openColumns(record)
	if err != nil {
		return err
	}
	accounts := in.texts()
	at := begin
	for n := in.uvarint(); n > 0 && !in.failed; n-- {
		at += id.Index(in.uvarint())
		flags, state := in.byte(), in.byte()
		a := act{at: at, effective: id.Decision(flags >> 2), erased: flags&2 != 0, claimed: flags&1 != 0,
			status: status(state >> 4), consent: consent(state & 15)}
		if result := in.uvarint(); result != 0 {
			a.result = at + id.Index(result)
		}
		if a.consent != noConsent {
			a.approval = in.text()
			for range min(in.uvarint(), maxVotes) {
				account := in.uvarint()
				if account>>1 >= uint64(len(accounts)) {
					in.failed = true
					break
				}
				a.votes = append(a.votes, Vote{accounts[account>>1], account&1 != 0})
			}
		}
		if !in.failed {
			visit(&a)
		}
	}
	if in.failed || len(in.rest) > 0 {
		return errColumns("acts")
	}
	return nil
}

// maxVotes bounds the votes that are read of a damaged record.
const maxVotes = 1 << 16
