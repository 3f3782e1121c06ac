package index

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/column"
	"github.com/agentledger/agentledger/internal/textcheck"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Filter selects events. The zero value of a field is no condition.
type Filter struct {
	Agent     id.Agent
	Tool      string // a pattern of tool names (textcheck.ValidToolGlob)
	Kind      string
	Declared  id.Decision
	Effective id.Decision
	Trace     id.Trace
	ByCaller  bool // Trace may also be that of the caller's traceparent
	Principal string
	Subject   string // for whom the agent acted (on_behalf_of)
	Issuer    string // of Subject; with Subject only
	Actor     string // the principal of the service's own events, with any credential or none
	Signer    event.Signer
	From, To  Bound // the events [From, To)

	Acts     bool               // acts alone
	Outcome  Outcome            // acts with this outcome
	Approver string             // acts whose approval this account voted on
	Receipts Receipts           // acts by their receipts
	Columns  []column.Condition // acts whose values satisfy all of these, at most column.MaxConditions
}

// Receipts selects acts by the receipts of tools. The zero value selects all.
type Receipts byte

// The selections of acts.
const (
	AnyReceipt    Receipts = iota
	OnlyConfirmed          // the tool confirms the act
	NotConfirmed           // all other acts: only claimed by the agent, not done, or with a receipt that shows nothing
)

// Bound is a time or a log index. The zero value is no bound.
type Bound struct {
	Given bool
	At    id.Instant // the first event received at this time or later; if 0, Index applies
	Index id.Index
}

// Check returns fault.Invalid for a filter that cannot be used.
func (f *Filter) Check() error {
	if f.Tool != "" && !textcheck.ValidToolGlob(f.Tool) {
		return fault.New(fault.Invalid, "tool must be a tool name or a pattern of a policy")
	}
	if len(f.Columns) > column.MaxConditions {
		return fault.New(fault.Invalid, fmt.Sprintf("column must be given at most %d times", column.MaxConditions))
	}
	if f.Issuer != "" && f.Subject == "" {
		return fault.New(fault.Invalid, "issuer requires on_behalf_of")
	}
	switch f.Signer {
	case "", event.SignerAgent, event.SignerBridge, event.SignerSystem:
		return nil
	}
	return fault.New(fault.Invalid, "signer must be agent, bridge or system")
}

// matches reports whether a row satisfies the filter, except for From and To.
func (f *Filter) matches(r *Row) bool {
	return (f.Agent == "" || f.Agent == r.Agent) && (f.Kind == "" || f.Kind == r.Kind) &&
		(f.Declared == 0 || f.Declared == r.Declared) && (f.Effective == 0 || f.Effective == r.Effective) &&
		(f.Trace == "" || f.Trace == r.Trace || f.ByCaller && f.Trace == r.Caller) && (f.Principal == "" || f.Principal == r.Principal) &&
		(f.Subject == "" || f.matchesSubject(r)) &&
		(f.Signer == "" || f.Signer == r.Signer) && (f.Actor == "" || f.Actor == r.actor()) &&
		(f.Tool == "" || textcheck.MatchTool(f.Tool, string(r.Tool)))
}

func (f *Filter) matchesSubject(r *Row) bool {
	of := r.subject()
	return f.Subject == of.Subject && (f.Issuer == "" || f.Issuer == of.Issuer)
}

// wanted returns the filter in the form that a search uses.
func (f *Filter) wanted() wanted {
	w := wanted{terms: f.terms(), matches: f.matches, columns: f.Columns}
	if f.Acts || f.Outcome != NoOutcome || f.Approver != "" || f.Receipts != AnyReceipt || len(f.Columns) > 0 {
		w.acts = f.matchesAct
	}
	return w
}

func (f *Filter) matchesAct(a *act) bool {
	return !a.link && (f.Outcome == NoOutcome || f.Outcome == a.outcome()) &&
		(f.Receipts == AnyReceipt || (f.Receipts == OnlyConfirmed) == (a.receipt == Confirmed)) && (f.Approver == "" ||
		slices.ContainsFunc(a.votes, func(v Vote) bool { return v.Account == f.Approver }))
}

// terms returns terms that every matching event has. The rare ones come first, so that blocks without them need not be
// searched for the others.
func (f *Filter) terms() (terms []term) {
	add := func(given bool, by field, text string) {
		if given {
			terms = append(terms, newTerm(by, text))
		}
	}
	add(f.Trace != "", byTrace, string(f.Trace))
	add(f.Subject != "" && f.Issuer == "", bySubject, f.Subject)
	add(f.Issuer != "", byPerson, personOf(event.Actor{Issuer: f.Issuer, Subject: f.Subject}))
	add(f.Principal != "", byPrincipal, f.Principal)
	add(f.Actor != "", byActor, f.Actor)
	add(f.Agent != "", byAgent, string(f.Agent))
	if by, text := toolTerm(f.Tool); text != "" {
		add(true, by, text)
	}
	add(f.Kind != "", byKind, f.Kind)
	add(f.Effective != 0, byEffective, f.Effective.String())
	add(f.Declared != 0, byDeclared, f.Declared.String())
	add(f.Signer != "", bySigner, string(f.Signer))
	return terms
}

// toolTerm returns the term of a pattern: the name if it has no wildcard, otherwise the segments before its first
// wildcard, or "" if it begins with one.
func toolTerm(glob string) (field, string) {
	wildcard := strings.IndexByte(glob, '*')
	if wildcard < 0 {
		return byTool, glob
	}
	end := 0
	for range maxBegins {
		dot := strings.IndexByte(glob[end:wildcard], '.')
		if dot < 0 {
			break
		}
		end += dot + 1
	}
	return byToolBegin, glob[:end]
}

// span is the events [begin, end).
type span struct{ begin, end id.Index }

func (s span) clip(other span) span {
	return span{max(s.begin, other.begin), min(s.end, other.end)}
}

// spansOf returns the events below end that are within From and To, in ascending order. If times decrease in the
// ledger, there may be several spans.
func (x *Index) spansOf(ctx context.Context, s *log.State, v *view, f *Filter) ([]span, error) {
	all := span{0, v.end}
	if f.From.Given && f.From.At == 0 {
		all.begin = f.From.Index
	}
	if f.To.Given && f.To.At == 0 {
		all.end = min(all.end, f.To.Index)
	}
	fromTime, toTime := f.From.Given && f.From.At != 0, f.To.Given && f.To.At != 0
	if all.begin >= all.end {
		return nil, nil
	}
	if !fromTime && !toTime {
		return []span{all}, nil
	}
	pieces, err := x.risingPieces(ctx, s, v)
	if err != nil {
		return nil, err
	}
	var spans []span
	for _, p := range pieces {
		wanted := p
		if fromTime {
			wanted.begin, err = x.firstSince(ctx, s, p, f.From.At)
		}
		if toTime && err == nil {
			wanted.end, err = x.firstSince(ctx, s, p, f.To.At)
		}
		if err != nil {
			return nil, err
		}
		if wanted = wanted.clip(all); wanted.begin < wanted.end {
			spans = append(spans, wanted)
		}
	}
	return spans, nil
}

// risingPieces splits the ledger at the events by which it returned to an earlier time (log.ClockKind). Within a piece,
// received_at never decreases.
func (x *Index) risingPieces(ctx context.Context, s *log.State, v *view) ([]span, error) {
	var pieces []span
	begin := id.Index(0)
	clocks := Filter{Kind: log.ClockKind}
	for row, err := range x.rows(ctx, s, v, clocks.wanted(), []span{{0, v.end}}, true) {
		if err != nil {
			return nil, err
		}
		if row.Index > begin {
			pieces, begin = append(pieces, span{begin, row.Index}), row.Index
		}
	}
	return append(pieces, span{begin, v.end}), nil
}

// timeKey is an event whose time is cached.
type timeKey struct {
	tenant id.Tenant
	at     id.Index
}

// maxTimes bounds the cached times, about 100 bytes each.
const maxTimes = 1 << 16

// firstSince returns the first event of a piece that was received at a time or later. It reads the same events while
// the ledger grows, and their times are cached. It splits the remaining range into 16 parts, so a ledger of 16 million
// events needs six reads.
func (x *Index) firstSince(ctx context.Context, s *log.State, p span, at id.Instant) (id.Index, error) {
	const parts = 16
	before := p.begin // all events of the piece below it were received earlier
	for step := id.Index(1) << 60; step > 0; step /= parts {
		var last []id.Index // of each complete part
		for n := id.Index(1); n < parts && step*n <= p.end-before; n++ {
			last = append(last, before+step*n-1)
		}
		times, err := x.receivedAt(ctx, s, last)
		if err != nil {
			return 0, err
		}
		begun, _ := slices.BinarySearch(times, at)
		before += step * id.Index(begun)
	}
	return before, nil
}

// receivedAt returns the times of events in ascending order.
func (x *Index) receivedAt(ctx context.Context, s *log.State, at []id.Index) ([]id.Instant, error) {
	times := make([]id.Instant, len(at))
	var unread []id.Index
	for i := range at {
		var known bool
		if times[i], known = x.times.Get(timeKey{s.Identity().Tenant, at[i]}); !known {
			unread = append(unread, at[i])
		}
	}
	if len(unread) == 0 {
		return times, nil
	}
	found, err := x.store.EventsAt(ctx, s.Identity().Tenant, unread, storage.FieldColumns)
	if err == nil {
		err = checkRead(len(unread) - len(found))
	}
	if err != nil {
		return nil, fmt.Errorf("read times of events: %w", err)
	}
	for _, e := range found {
		i, _ := slices.BinarySearch(at, e.Index)
		times[i] = e.ReceivedAt
		x.times.Put(timeKey{s.Identity().Tenant, e.Index}, e.ReceivedAt)
	}
	return times, nil
}
