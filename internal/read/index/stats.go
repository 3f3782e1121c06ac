package index

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Dimension is a value by which acts are counted.
type Dimension string

// The dimensions. An act has one value of each, except for approvers.
const (
	ByOutcome  Dimension = "outcome"
	ByAgent    Dimension = "agent"
	ByTool     Dimension = "tool"
	ByDecision Dimension = "decision" // effective
	ByDeclared Dimension = "declared"
	ByRule     Dimension = "rule"
	ByApprover Dimension = "approver" // each account that voted on the act's approval; "" if none did
	ByHour     Dimension = "hour"     // of received_at, UTC
	ByDay      Dimension = "day"      // of received_at, UTC
)

// Dimensions returns all dimensions.
func Dimensions() []Dimension {
	return []Dimension{ByOutcome, ByAgent, ByTool, ByDecision, ByDeclared, ByRule, ByApprover, ByHour, ByDay}
}

// Group contains the values of one row of counts. Values of other dimensions are zero.
type Group struct {
	Outcome  Outcome
	Agent    id.Agent
	Tool     id.Tool
	Decision id.Decision
	Declared id.Decision
	Rule     string
	Approver string
	Hour     id.Instant
	Day      id.Instant
}

// Approvals counts acts by the state of their approval: Requested is the sum of Waiting, Approved, Refused, Expired and
// Cancelled. An approval that was approved and then expired or was cancelled is one of the latter.
type Approvals struct {
	Requested, Waiting, Approved, Refused, Expired, Cancelled uint64

	Done uint64 // approved, and the act is done

	// Median and P90 are percentiles of the waits from the request to the decision, of Approved and Refused, in
	// milliseconds: the smallest wait that is at least as long as 50 or 90 percent of them. They are 0 if there is none.
	Median, P90 int64
}

// Count counts the acts that have the values of a group.
type Count struct {
	Group
	Acts      uint64
	Approvals Approvals
}

// Stats are counts of acts.
type Stats struct {
	Acts      uint64
	Outcomes  map[Outcome]uint64 // of each outcome
	Approvals Approvals
	Counts    [][]Count // for each grouping, most acts first; none without dimensions
	End       id.Index  // the counts contain the events before this index
}

// maxGroups bounds the groups of each grouping.
const maxGroups = 10_000

// Stats counts the acts that a filter selects, once for each grouping, which is a list of dimensions. It reads them once, so several groupings
// cost little more than one. It returns fault.Invalid if a grouping has more than maxGroups groups.
//
// It compares agent, tool, kind, decisions, outcome and approver of each act. For trace, principal and signer it relies
// on the postings: two values with the same 44 bits would be counted together.
func (x *Index) Stats(ctx context.Context, t id.Tenant, f Filter, by ...[]Dimension) (stats Stats, err error) {
	unknown := func(d Dimension) bool { return !slices.Contains(Dimensions(), d) }
	for _, dimensions := range by {
		if len(dimensions) > len(Dimensions()) || slices.ContainsFunc(dimensions, unknown) {
			return Stats{}, fault.New(fault.Invalid, "by must be of outcome, agent, tool, decision, declared, rule, approver, hour and day")
		}
	}
	if err := f.Check(); err != nil {
		return Stats{}, err
	}
	err = x.inView(ctx, t, func(s *log.State, v *view) error {
		if err := v.checkConditions(f.Columns); err != nil {
			return err
		}
		counted, err := x.countActs(ctx, s, v, &f, by)
		if err == nil {
			stats = counted.stats(v.end)
		}
		return err
	})
	return stats, err
}

// countWorkers is the number of goroutines of one call that count.
const countWorkers = 2

// blockPart is a part of one block.
type blockPart struct {
	span
	places *placeSet // of the block, which may match; nil if all may
}

// countActs counts the acts of a view.
func (x *Index) countActs(ctx context.Context, s *log.State, v *view, f *Filter, by [][]Dimension) (*counter, error) {
	if len(f.Columns) > 0 && v.end < s.Size() { // the erasures after the end are unknown, and their values are not removed yet
		return nil, &fault.Error{Kind: fault.Unavailable, Code: "unavailable", Message: "The latest events are being indexed"}
	}
	spans, err := x.spansOf(ctx, s, v, f)
	if err != nil {
		return nil, err
	}
	counters := make([]*counter, countWorkers)
	parts := make(chan blockPart)
	g, ctx := errgroup.WithContext(ctx)
	for i := range counters {
		c := newCounter(f, by)
		counters[i] = c
		g.Go(func() error {
			for p := range parts {
				if err := x.countIndexed(ctx, v, c, p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(parts)
		return x.sendParts(ctx, v, f.terms(), spans, parts)
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := counters[0]
	for _, s := range spans {
		if err := v.countTail(all, s.clip(span{v.position, v.end})); err != nil {
			return nil, err
		}
	}
	for _, c := range counters[1:] {
		all.addAll(c)
	}
	return all, all.check()
}

// sendParts sends the parts of spans below the position that may have matching acts.
func (x *Index) sendParts(ctx context.Context, v *view, terms []term, spans []span, parts chan<- blockPart) error {
	dense, width := make([]bool, len(terms)), widestWindow(terms)
	for _, s := range spans {
		if s = s.clip(span{0, v.position}); s.begin >= s.end { // in the tail
			continue
		}
		for first := uint64(s.begin) / blockEvents; id.Index(first*blockEvents) < s.end; first += width {
			window := [2]uint64{first, min(first+width, uint64(s.end-1)/blockEvents+1)}
			sets, err := x.readWindow(ctx, v, terms, dense, window)
			if err != nil {
				return err
			}
			for n, places := range sets {
				base := id.Index(window[0]+uint64(n)) * blockEvents
				p := blockPart{s.clip(span{base, base + blockEvents}), places}
				if len(terms) == 0 {
					p.places = nil
				} else if places == nil || !p.narrow(base) {
					continue
				}
				select {
				case parts <- p:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}
	}
	return nil
}

// narrow restricts a part to the span of its places, and reports whether any is left.
func (p *blockPart) narrow(base id.Index) bool {
	var within placeSet
	within.AddRange(int(p.begin-base), int(p.end-base))
	if !within.Intersect(p.places) {
		return false
	}
	for first := range within.Places(true) {
		p.begin = base + id.Index(first)
		break
	}
	for last := range within.Places(false) {
		p.end = base + id.Index(last) + 1
		break
	}
	return true
}

// countIndexed counts the acts of a part below the position.
func (x *Index) countIndexed(ctx context.Context, v *view, c *counter, p blockPart) error {
	first, end := uint64(p.begin)/chunkEvents, uint64(p.end-1)/chunkEvents+1
	rows, err := x.readChunks(ctx, v, kindColumns, first, end)
	if err != nil {
		return fmt.Errorf("read columns: %w", err)
	}
	joined, err := x.readChunks(ctx, v, kindActs, first, end)
	if err != nil {
		return fmt.Errorf("read acts: %w", err)
	}
	for n := range rows {
		chunk := first + uint64(n)
		if err := c.rows.decode(rows[n].Value); err != nil {
			return damaged(err)
		}
		c.begin(p)
		count := func(a *act) { c.count(a, int(a.at%chunkEvents)) }
		if len(c.filter.Columns) > 0 {
			found, err := x.findValues(ctx, v, chunk, c.filter.Columns)
			if err != nil {
				return err
			}
			count = func(a *act) {
				if found.contains(a.at) && !a.erased {
					c.count(a, int(a.at%chunkEvents))
				}
			}
		}
		if err := v.visitActs(chunk, joined[n].Value, count); err != nil {
			return err
		}
		if c.end(); c.check() != nil || ctx.Err() != nil {
			return errors.Join(c.check(), ctx.Err())
		}
	}
	return nil
}

// readChunks returns the records of the chunks [first, end).
func (x *Index) readChunks(ctx context.Context, v *view, kind storage.Kind, first, end uint64) ([]storage.Record, error) {
	key := func(chunk uint64) string { return columnsKey(v.generation.Number, chunk) }
	found, err := x.store.Scan(ctx, v.tenant, kind, key(first), key(end), int(end-first))
	if err != nil {
		return nil, err
	}
	if len(found) != int(end-first) {
		return nil, damaged(fmt.Errorf("%w: %d of %d records", storage.ErrCorrupt, len(found), end-first))
	}
	return found, nil
}

// countTail counts the acts of a span of the tail.
func (v *view) countTail(c *counter, s span) error {
	for s.begin < s.end {
		chunk := uint64(s.begin) / chunkEvents
		p := blockPart{span{s.begin, min(s.end, id.Index(chunk+1)*chunkEvents)}, new(placeSet)}
		rows := v.tail.rows[p.begin-v.tail.begin : p.end-v.tail.begin]
		for i := range rows {
			if c.filter.matches(&rows[i]) && v.satisfies(rows[i].Index, c.filter.Columns) {
				p.places.AddPlace(uint16(rows[i].Index % blockEvents))
			}
		}
		c.rows = *columnsOf(rows)
		c.begin(p)
		if err := v.visitActs(chunk, nil, func(a *act) { c.count(a, int(a.at-p.begin)) }); err != nil {
			return err
		}
		c.end()
		s.begin = p.end
	}
	return nil
}

// counter counts acts, one chunk at a time: begin, count for each act, end. Until end, agents, tools and so on are numbers
// of the chunk's dictionaries, so that texts are compared once per group and chunk, and not per act.
type counter struct {
	filter    *Filter
	groupings []grouping
	voters    bool // a grouping is by approver
	total     sum

	part      blockPart
	rows      columns
	admitted  [textColumns][]bool // by number in the dictionary; nil if all are
	approvers dictionary          // "" is 0
	counted   []counted           // acts
	voted     []counted           // acts, each as often as it has approvers, but at least once
	sums      []*sum              // by number of the group
}

// grouping is a list of dimensions with the groups that were found.
type grouping struct {
	by     []Dimension
	groups map[Group]*sum
}

// counted is an act in one group.
type counted struct {
	outcome  Outcome
	consent  consent
	row      uint16
	approver uint32
	wait     int64
	group    uint64
}

// sum counts the acts of a group.
type sum struct {
	acts     uint64
	outcomes [len(outcomes)]uint64
	consents [consentCancelled + 1]uint64
	done     uint64 // with a consent
	waits    []int64
}

func newCounter(f *Filter, by [][]Dimension) *counter {
	c := &counter{filter: f}
	for _, dimensions := range by {
		c.groupings = append(c.groupings, grouping{dimensions, make(map[Group]*sum)})
		c.voters = c.voters || slices.Contains(dimensions, ByApprover)
	}
	return c
}

// begin begins a chunk, of which rows has the columns, in a part of a block.
func (c *counter) begin(p blockPart) {
	c.part, c.counted, c.voted, c.approvers = p, slices.Grow(c.counted[:0], chunkEvents), c.voted[:0], dictionary{}
	c.approvers.number("")
	f := c.filter
	admit := func(column int, given bool, admits func(text string) bool) {
		if c.admitted[column] = c.admitted[column][:0]; !given {
			c.admitted[column] = nil
			return
		}
		for _, text := range c.rows.texts[column] {
			c.admitted[column] = append(c.admitted[column], admits(text))
		}
	}
	admit(agentColumn, f.Agent != "", func(text string) bool { return text == string(f.Agent) })
	admit(toolColumn, f.Tool != "", func(text string) bool { return textcheck.MatchTool(f.Tool, text) })
	admit(kindColumn, f.Kind != "", func(text string) bool { return text == f.Kind })
}

// count counts an act if it matches. row is the number of its row.
func (c *counter) count(a *act, row int) {
	p, f := &c.part, c.filter
	if a.at < p.begin || a.at >= p.end || p.places != nil && !p.places.Contains(uint16(a.at%blockEvents)) || !c.admits(row) ||
		a.erased && (f.Principal != "" || f.Subject != "") || !f.matchesAct(a) { // an erased event has neither, but its postings are still stored
		return
	}
	e := counted{outcome: a.outcome(), consent: a.consent, row: uint16(row), wait: a.wait}
	c.total.add(&e)
	c.counted = append(c.counted, e)
	if !c.voters {
		return
	}
	if len(a.votes) == 0 {
		c.voted = append(c.voted, e)
	}
	for i, v := range a.votes {
		if !slices.ContainsFunc(a.votes[:i], func(before Vote) bool { return before.Account == v.Account }) {
			e.approver = uint32(c.approvers.number(v.Account))
			c.voted = append(c.voted, e)
		}
	}
}

// admits reports whether the columns of a row match the filter.
func (c *counter) admits(row int) bool {
	for n, admitted := range c.admitted {
		if admitted != nil && !admitted[c.rows.numbers[n][row]] {
			return false
		}
	}
	decisions := c.rows.decisions[row]
	return (c.filter.Effective == 0 || c.filter.Effective == id.Decision(decisions>>2)) &&
		(c.filter.Declared == 0 || c.filter.Declared == id.Decision(decisions&3))
}

// numbered is a dimension in one chunk, whose values are numbers below size.
type numbered struct {
	size uint64
	of   func(*counted) uint64
	set  func(*Group, uint64)
}

// maxDense bounds the numbers of the groups of one chunk, which are dense up to it.
const maxDense = 1 << 14

// end adds the acts of the chunk to their groups.
func (c *counter) end() {
	for _, g := range c.groupings {
		acts := c.counted
		if slices.Contains(g.by, ByApprover) {
			acts = c.voted
		}
		c.group(g, acts)
	}
}

// group adds acts to their groups of one grouping.
func (c *counter) group(to grouping, acts []counted) {
	if len(to.by) == 0 {
		return
	}
	for k := range acts {
		acts[k].group = 0
	}
	dimensions := make([]numbered, len(to.by))
	size := uint64(1)
	for i, d := range to.by {
		dimensions[i] = c.numbered(d)
		if n := &dimensions[i]; n.size > 1 {
			if size*n.size > maxDense {
				size = compact(acts)
			}
			for k := range acts {
				e := &acts[k]
				e.group = e.group*n.size + n.of(e)
			}
			size *= n.size
		}
	}
	if size > maxDense {
		size = compact(acts)
	}
	c.sums = slices.Grow(c.sums[:0], int(size))[:size]
	clear(c.sums)
	for k := range acts {
		e := &acts[k]
		if c.sums[e.group] == nil {
			var g Group
			for _, d := range dimensions {
				d.set(&g, d.of(e))
			}
			if to.groups[g] == nil {
				to.groups[g] = new(sum)
			}
			c.sums[e.group] = to.groups[g]
		}
		c.sums[e.group].add(e)
	}
}

// compact numbers the groups of acts anew, from 0, and returns how many there are.
func compact(acts []counted) uint64 {
	numbers := make(map[uint64]uint64)
	for k := range acts {
		e := &acts[k]
		n, known := numbers[e.group]
		if !known {
			n = uint64(len(numbers))
			numbers[e.group] = n
		}
		e.group = n
	}
	return uint64(len(numbers))
}

// numbered returns a dimension in the present chunk.
func (c *counter) numbered(d Dimension) numbered {
	text := func(column int, set func(g *Group, text string)) numbered {
		texts, numbers := c.rows.texts[column], c.rows.numbers[column]
		return numbered{uint64(len(texts)), func(e *counted) uint64 { return uint64(numbers[e.row]) },
			func(g *Group, n uint64) { set(g, texts[n]) }}
	}
	switch d {
	case ByOutcome:
		return numbered{uint64(len(outcomes)), func(e *counted) uint64 { return uint64(e.outcome) },
			func(g *Group, n uint64) { g.Outcome = Outcome(n) }}
	case ByAgent:
		return text(agentColumn, func(g *Group, text string) { g.Agent = id.Agent(text) })
	case ByTool:
		return text(toolColumn, func(g *Group, text string) { g.Tool = id.Tool(text) })
	case ByRule:
		return text(ruleColumn, func(g *Group, text string) { g.Rule = text })
	case ByDecision:
		return numbered{4, func(e *counted) uint64 { return uint64(c.rows.decisions[e.row]>>2) & 3 },
			func(g *Group, n uint64) { g.Decision = id.Decision(n) }}
	case ByDeclared:
		return numbered{4, func(e *counted) uint64 { return uint64(c.rows.decisions[e.row]) & 3 },
			func(g *Group, n uint64) { g.Declared = id.Decision(n) }}
	case ByApprover:
		return numbered{uint64(len(c.approvers.texts)), func(e *counted) uint64 { return uint64(e.approver) },
			func(g *Group, n uint64) { g.Approver = c.approvers.texts[n] }}
	}
	if d == ByDay {
		return c.numberedTimes(24*hour, func(g *Group, at id.Instant) { g.Day = at })
	}
	return c.numberedTimes(hour, func(g *Group, at id.Instant) { g.Hour = at })
}

const hour = 60 * 60 * 1000 // in milliseconds

// numberedTimes returns the dimension of times of a length in milliseconds.
func (c *counter) numberedTimes(length id.Instant, set func(*Group, id.Instant)) numbered {
	var begins []id.Instant
	known, numbers := make(map[id.Instant]uint16), make([]uint16, len(c.rows.received))
	for row, at := range c.rows.received {
		if at -= at % length; row > 0 && begins[numbers[row-1]] == at {
			numbers[row] = numbers[row-1]
			continue
		}
		n, found := known[at]
		if !found {
			n = uint16(len(begins))
			known[at], begins = n, append(begins, at)
		}
		numbers[row] = n
	}
	return numbered{uint64(len(begins)), func(e *counted) uint64 { return uint64(numbers[e.row]) },
		func(g *Group, n uint64) { set(g, begins[n]) }}
}

// check returns fault.Invalid if there are too many groups.
func (c *counter) check() error {
	if slices.ContainsFunc(c.groupings, func(g grouping) bool { return len(g.groups) > maxGroups }) {
		return fault.New(fault.Invalid, "There are more than 10000 groups: request a shorter time or fewer dimensions")
	}
	return nil
}

// addAll adds the counts of another counter, which may not be used any more.
func (c *counter) addAll(other *counter) {
	c.total.addAll(&other.total)
	for i, to := range c.groupings {
		for g, s := range other.groupings[i].groups {
			if to.groups[g] == nil {
				to.groups[g] = s
				continue
			}
			to.groups[g].addAll(s)
		}
	}
}

func (s *sum) add(e *counted) {
	s.acts++
	s.outcomes[e.outcome]++
	if e.consent == noConsent {
		return
	}
	s.consents[e.consent]++
	if e.consent == consentGiven && e.outcome == Done {
		s.done++
	}
	if e.wait > 0 {
		s.waits = append(s.waits, e.wait)
	}
}

func (s *sum) addAll(other *sum) {
	s.acts += other.acts
	s.done += other.done
	for i, n := range other.outcomes {
		s.outcomes[i] += n
	}
	for i, n := range other.consents {
		s.consents[i] += n
	}
	s.waits = append(s.waits, other.waits...)
}

// approvals returns the counts of approvals. It sorts the waits.
func (s *sum) approvals() Approvals {
	a := Approvals{Waiting: s.consents[consentPending], Approved: s.consents[consentGiven], Refused: s.consents[consentRefused],
		Expired: s.consents[consentExpired], Cancelled: s.consents[consentCancelled], Done: s.done}
	a.Requested = a.Waiting + a.Approved + a.Refused + a.Expired + a.Cancelled
	if n := len(s.waits); n > 0 {
		slices.Sort(s.waits)
		a.Median, a.P90 = s.waits[(n*50+99)/100-1], s.waits[(n*90+99)/100-1]
	}
	return a
}

func (c *counter) stats(end id.Index) Stats {
	stats := Stats{Acts: c.total.acts, Outcomes: make(map[Outcome]uint64), Approvals: c.total.approvals(), End: end}
	for o := Done; o <= Open; o++ {
		stats.Outcomes[o] = c.total.outcomes[o]
	}
	for _, found := range c.groupings {
		counts := make([]Count, 0, len(found.groups))
		for g, s := range found.groups {
			counts = append(counts, Count{g, s.acts, s.approvals()})
		}
		slices.SortFunc(counts, func(a, b Count) int { return cmp.Or(cmp.Compare(b.Acts, a.Acts), a.compareGroup(&b.Group)) })
		stats.Counts = append(stats.Counts, counts)
	}
	return stats
}

func (g *Group) compareGroup(other *Group) int {
	return cmp.Or(cmp.Compare(g.Hour, other.Hour), cmp.Compare(g.Day, other.Day), strings.Compare(string(g.Agent), string(other.Agent)),
		strings.Compare(string(g.Tool), string(other.Tool)), cmp.Compare(g.Decision, other.Decision), cmp.Compare(g.Declared, other.Declared),
		cmp.Compare(g.Outcome, other.Outcome), strings.Compare(g.Rule, other.Rule), strings.Compare(g.Approver, other.Approver))
}
