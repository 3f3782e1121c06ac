package index

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

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
	before    map[id.Index]actBefore  // the events that the joined ones name, as in the view
	events    map[id.Event]id.Index   // the acts among the joined events and those that they name
	steps     map[stepName]id.Index   // the same of steps
	approvals map[string]*approvalOf
	keys      toolKeys             // in force after the latest joined event; nil if unknown, because no receipt was joined and no change of keys
	actions   map[id.Index]id.Hash // digests of the acts whose results have receipts
}

// actBefore is what a view has of an event.
type actBefore struct {
	act
	found bool // it is an act or a link
}

// approvalOf is an approval as far as it has been read.
type approvalOf struct {
	name    string
	consent consent
	votes   []Vote
	act     id.Index // the act that it belongs to
	linked  bool     // act is known
	end     id.Index // the event after its latest transition

	requested, decided id.Instant // 0 if that is not known, or if the approvers have not decided
}

// wait returns the wait of an act.
func (a *approvalOf) wait() int64 {
	if a.requested == 0 || a.decided == 0 {
		return 0
	}
	return max(1, int64(a.decided-a.requested))
}

func (x *Index) newJoiner(s *log.State, v *view) *joiner {
	return &joiner{index: x, state: s, view: v, changed: make(map[uint64]*changedActs),
		events: make(map[id.Event]id.Index), steps: make(map[stepName]id.Index), approvals: make(map[string]*approvalOf)}
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
	if err := j.locateSteps(ctx, rows, parts); err != nil {
		return err
	}
	var err error
	if j.before, err = j.readBefore(ctx, j.named(nil, parts), rows[0].Index); err != nil {
		return err
	}
	if err := j.prepareReceipts(ctx, parts); err != nil {
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
		if of, known := j.steps[parts[i].step]; known && parts[i].role == roleStepResult {
			at = append(at, of)
		}
	}
	return at
}

// stepAct is the act of a step that did not state how it ended, or a step without a tool, so that its act is not looked for.
type stepAct struct {
	name stepName
	at   id.Index
}

// stepActs returns the steps among rows that are no results.
func stepActs(rows []Row, parts []part) (steps []stepAct) {
	for i := range parts {
		if parts[i].role != roleStepResult && parts[i].step != (stepName{}) {
			steps = append(steps, stepAct{parts[i].step, rows[i].Index})
		}
	}
	return steps
}

// locateSteps finds the acts of the steps whose results are among rows.
func (j *joiner) locateSteps(ctx context.Context, rows []Row, parts []part) error {
	for _, s := range stepActs(rows, parts) {
		j.steps[s.name] = s.at
	}
	wanted := make(map[stepName]struct{})
	for i := range parts {
		if _, known := j.steps[parts[i].step]; !known && parts[i].role == roleStepResult {
			wanted[parts[i].step] = struct{}{}
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	for _, s := range j.view.tail.steps {
		if _, is := wanted[s.name]; is {
			j.steps[s.name] = s.at
			delete(wanted, s.name)
		}
	}
	for name := range wanted {
		at, found, err := j.index.findStep(ctx, j.state, j.view, name)
		if err != nil {
			return err
		}
		if found {
			j.steps[name] = at
		}
	}
	return nil
}

// findStep returns the act of a step among the indexed events.
func (x *Index) findStep(ctx context.Context, s *log.State, v *view, name stepName) (at id.Index, found bool, err error) {
	var of []candidate
	terms := wanted{terms: []term{newTerm(byStep, string(name[:]))}}
	for c, err := range x.candidates(ctx, v, terms, []span{{0, v.position}}, true) {
		if err != nil {
			return 0, false, err
		}
		of = append(of, c)
	}
	err = x.readEvents(ctx, s, of, func(_ int, e *storage.Event) error {
		_, p, err := newRowAndPart(e)
		if err == nil && p.role == roleAct && p.step == name { // otherwise another step with this fingerprint, or an erased one
			at, found = e.Index, true
		}
		return err
	})
	return at, found, err
}

// readBefore returns what the view has of the events at indices before end. It reads each record once.
func (j *joiner) readBefore(ctx context.Context, at []id.Index, end id.Index) (map[id.Index]actBefore, error) {
	before := make(map[id.Index]actBefore)
	slices.Sort(at)
	for len(at) > 0 && at[0] < end {
		chunk := uint64(at[0]) / chunkEvents
		read, err := j.index.readActs(ctx, j.view, chunk)
		if err != nil {
			return nil, err
		}
		for len(at) > 0 && uint64(at[0])/chunkEvents == chunk {
			var b actBefore
			if i, found := read.search(at[0]); found {
				b = actBefore{read[i], true}
			}
			before[at[0]] = b
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
		return j.takeResult(ctx, r, p)
	case roleStepResult:
		return j.takeStepResult(ctx, r, p)
	case roleApproval:
		if p.first { // nothing was said about it before
			j.approvals[p.approval] = &approvalOf{name: p.approval}
		}
		a, err := j.approval(ctx, p.approval)
		if err != nil {
			return err
		}
		a.take(p, r.Index, r.ReceivedAt)
		if at, known := j.events[p.intent]; known && !a.linked {
			a.act, a.linked = at, true
		}
		return j.decide(ctx, a, r.Index)
	case roleErasure:
		return j.erase(ctx, p.erased, r.Index)
	case roleToolKeys:
		j.keys = p.toolKeys
	}
	return nil
}

// takeResult gives an act its result. Later ones change nothing, but a result that names its intent replaces the one by a step. If it
// didn't, an erasure of the step would have to find it.
func (j *joiner) takeResult(ctx context.Context, r *Row, p *part) error {
	at, known := j.events[p.intent]
	if !known {
		return nil
	}
	a, found, err := j.find(ctx, at)
	if err != nil || !found || a.result != 0 && !a.linked {
		return err
	}
	j.unlink(&a, r.Index)
	a.status, a.result = p.status, r.Index
	j.takeReceipt(&a, r, p)
	j.put(a, r.Index)
	return nil
}

// takeStepResult gives the act of an earlier step its result.
func (j *joiner) takeStepResult(ctx context.Context, r *Row, p *part) error {
	at, known := j.steps[p.step]
	if !known || at >= r.Index {
		return nil
	}
	a, found, err := j.find(ctx, at)
	if err != nil || !found || a.erased || a.result != 0 { // a rebuild doesn't find the step of an erased act
		return err
	}
	a.status, a.result, a.linked = p.status, r.Index, true
	j.put(a, r.Index)
	j.put(act{at: r.Index, result: at, link: true}, r.Index)
	return nil
}

// unlink removes the result by a step from an act, if it has one. The caller puts the act.
func (j *joiner) unlink(a *act, by id.Index) {
	if a.linked {
		j.put(act{at: a.result, result: a.result, link: true}, by)
		a.status, a.result, a.linked = noStatus, 0, false
	}
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
func (a *approvalOf) take(p *part, at id.Index, received id.Instant) {
	a.consent, a.end = p.consent, at+1
	switch {
	case p.first:
		a.requested = received
	case p.consent != consentGiven && p.consent != consentRefused: // pending again, or ended without a decision that counts
		a.decided = 0
	case a.decided == 0:
		a.decided = received
	}
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
	if b, known := j.before[at]; known {
		return b.act, b.found, nil
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
	return j.changeAt(ctx, of.act, by, func(a *act) {
		a.approval, a.consent, a.votes, a.wait = of.name, of.consent, of.votes, of.wait()
	})
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
		if a.take(&p, e.Index, e.ReceivedAt); p.intent == "" {
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
	var linked []id.Index
	for _, a := range j.before {
		if a.link {
			linked = append(linked, a.result)
		}
	}
	acts, err := j.readBefore(ctx, linked, by)
	if err != nil {
		return err
	}
	maps.Copy(j.before, acts)
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
		j.unlink(&a, by)
		if a.erased = true; a.result == 0 {
			a.status = noStatus
		}
		a.forgetReceipt(Unchecked)
		j.put(a, by)
	case roleResult:
		return j.change(ctx, p.intent, by, func(a *act) {
			if a.result == r.Index {
				a.status = statusUnknown
				a.forgetReceipt(NoReceipt)
			}
		})
	case roleNone:
		if r.Signer != event.SignerBridge {
			return nil
		}
		l, found, err := j.find(ctx, r.Index)
		if err != nil || !found || !l.link || l.result == l.at {
			return err
		}
		return j.changeAt(ctx, l.result, by, func(a *act) { j.unlink(a, by) })
	}
	return nil
}

// readActs returns the acts of a chunk in a view.
func (x *Index) readActs(ctx context.Context, v *view, chunk uint64) (read acts, err error) {
	err = x.visitActs(ctx, v, chunk, func(a *act) { read = append(read, *a) })
	return read, err
}

// visitActs calls visit with each act of a chunk in a view, in ascending order. The act is valid during the call.
func (x *Index) visitActs(ctx context.Context, v *view, chunk uint64, visit func(*act)) error {
	var record []byte
	if v.indexes(chunk) {
		var err error
		if record, err = x.readRecord(ctx, v.tenant, kindActs, columnsKey(v.generation.Number, chunk)); err != nil {
			return fmt.Errorf("read acts: %w", err)
		}
	}
	return v.visitActs(chunk, record, visit)
}

// indexes reports whether the records of the view contain a chunk.
func (v *view) indexes(chunk uint64) bool { return id.Index(chunk*chunkEvents) < v.position }

// visitActs calls visit with each act of a chunk, of which record has those that are indexed.
func (v *view) visitActs(chunk uint64, record []byte, visit func(*act)) error {
	begin, changed := id.Index(chunk*chunkEvents), v.tail.acts[chunk]
	if changed == nil && v.indexes(chunk) {
		return damaged(visitActs(record, begin, visit))
	}
	var all acts
	if v.indexes(chunk) {
		if err := visitActs(record, begin, func(a *act) { all = append(all, *a) }); err != nil {
			return damaged(err)
		}
	}
	if changed != nil {
		all = all.merge(changed.acts)
	}
	for i := range all {
		visit(&all[i])
	}
	return nil
}

// findActs returns the wanted acts of a span of one chunk. Unless places is nil, they are at these places of the block.
func (x *Index) findActs(ctx context.Context, v *view, s span, places *placeSet, w wanted) (found acts, err error) {
	chunk := uint64(s.begin) / chunkEvents
	var satisfying *chunkSet
	if len(w.columns) > 0 {
		if satisfying, err = x.findValues(ctx, v, chunk, w.columns); err != nil || satisfying.isEmpty() {
			return nil, err
		}
	}
	err = x.visitActs(ctx, v, chunk, func(a *act) {
		if s.begin <= a.at && a.at < s.end && (places == nil || places.Contains(uint16(a.at%blockEvents))) &&
			(satisfying == nil || satisfying.contains(a.at) && !a.erased) && w.acts(a) {
			found = append(found, *a)
		}
	})
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
//	a dictionary of accounts and tools: a uvarint count and that many texts
//	acts: difference of index to the one before (uvarint), receipt*64 + linked*16 + decision*4 + erased*2 + claimed (byte),
//	status*16 + consent (byte), difference of result to index or 0 (uvarint)
//
// and after them, for a confirmed act, the number of its tool in the dictionary (uvarint), and for an act with a consent, its approval (text), its wait (uvarint), and its votes: a uvarint count and
// that many uvarints, number of the account*2 + approve. The text of an account that voted as a deputy is the account, a slash
// and the represented account. Among the acts are links: the difference of index, linkFlag (byte),
// and the difference of index to that of the act (uvarint).

// linkFlag marks a link.
const linkFlag = 1 << 5

// encodeActs returns the record of acts that follow begin.
func encodeActs(all acts, begin id.Index) []byte {
	var accounts dictionary
	var body []byte
	before := begin
	all = slices.DeleteFunc(all, func(a act) bool { return a.link && a.result == a.at })
	for i := range all {
		a := &all[i]
		body = binary.AppendUvarint(body, uint64(a.at-before))
		if before = a.at; a.link {
			body = binary.AppendUvarint(append(body, linkFlag), uint64(a.at-a.result))
			continue
		}
		body = append(body, byte(a.receipt)<<6|bit(a.linked)<<4|byte(a.effective)<<2|bit(a.erased)<<1|bit(a.claimed), byte(a.status)<<4|byte(a.consent))
		result := uint64(0)
		if a.result != 0 {
			result = uint64(a.result - a.at)
		}
		body = binary.AppendUvarint(body, result)
		if a.receipt == Confirmed {
			body = binary.AppendUvarint(body, accounts.number(a.tool))
		}
		if a.consent == noConsent {
			continue
		}
		body = append(binary.AppendUvarint(body, uint64(len(a.approval))), a.approval...)
		body = binary.AppendUvarint(body, uint64(a.wait))
		body = binary.AppendUvarint(body, uint64(len(a.votes)))
		for _, v := range a.votes {
			body = binary.AppendUvarint(body, accounts.number(v.accounts())<<1|uint64(bit(v.Approve)))
		}
	}
	b := binary.AppendUvarint(nil, uint64(len(accounts.texts)))
	for _, text := range accounts.texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	b = binary.AppendUvarint(b, uint64(len(all)))
	return s2.EncodeBetter(nil, append(b, body...))
}

// accounts returns the text of the accounts of a vote.
func (v *Vote) accounts() string {
	if v.DeputyFor == "" {
		return v.Account
	}
	return v.Account + "/" + v.DeputyFor
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// visitActs calls visit with each act of a record. The act is valid during the call.
func visitActs(record []byte, begin id.Index, visit func(*act)) error {
	in, err := openColumns(nil, record, maxColumns)
	if err != nil {
		return err
	}
	accounts := in.texts()
	at := begin
	var a act
	for n := in.uvarint(); n > 0 && !in.failed; n-- {
		at += id.Index(in.uvarint())
		flags := in.byte()
		if flags == linkFlag {
			if a = (act{at: at, result: at - id.Index(in.uvarint()), link: true}); !in.failed {
				visit(&a)
			}
			continue
		}
		state := in.byte()
		a = act{at: at, effective: id.Decision(flags >> 2 & 3), erased: flags&2 != 0, claimed: flags&1 != 0, linked: flags&16 != 0,
			receipt: Receipt(flags >> 6),
			status:  status(state >> 4), consent: consent(state & 15)}
		if a.effective > id.Deny || a.status > statusSkipped || a.consent > consentCancelled {
			in.failed = true
		}
		if result := in.uvarint(); result != 0 {
			a.result = at + id.Index(result)
		}
		if a.receipt == Confirmed {
			if tool := in.uvarint(); tool < uint64(len(accounts)) {
				a.tool = accounts[tool]
			} else {
				in.failed = true
			}
		}
		if a.consent != noConsent {
			a.approval, a.wait = in.text(), int64(in.uvarint())
			for range min(in.uvarint(), maxVotes) {
				account := in.uvarint()
				if account>>1 >= uint64(len(accounts)) {
					in.failed = true
					break
				}
				who, represented, _ := strings.Cut(accounts[account>>1], "/")
				a.votes = append(a.votes, Vote{Account: who, DeputyFor: represented, Approve: account&1 != 0})
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
