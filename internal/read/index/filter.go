package index

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/toolglob"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Filter says which events are wanted. The zero value of a member is no condition.
type Filter struct {
	Agent     id.Agent
	Tool      string // a pattern of package toolglob
	Kind      string
	Declared  id.Decision
	Effective id.Decision
	Trace     id.Trace
	Principal string
	Signer    event.Signer
	From, To  Bound // the events [From, To)
}

// Bound is a time or a log index. The zero value is no bound.
type Bound struct {
	Given bool
	At    id.Instant // the first event that was received then or later; 0: Index counts
	Index id.Index
}

// Check refuses a filter that no list can be made of: fault.Invalid.
func (f *Filter) Check() error {
	if f.Tool != "" && !toolglob.Valid(f.Tool) {
		return fault.New(fault.Invalid, "tool must be a tool name or a pattern of a policy")
	}
	switch f.Signer {
	case "", event.SignerAgent, event.SignerBridge, event.SignerSystem:
		return nil
	}
	return fault.New(fault.Invalid, "signer must be agent, bridge or system")
}

// matches reports whether a row is wanted, apart from From and To.
func (f *Filter) matches(r *Row) bool {
	return (f.Agent == "" || f.Agent == r.Agent) && (f.Kind == "" || f.Kind == r.Kind) &&
		(f.Declared == 0 || f.Declared == r.Declared) && (f.Effective == 0 || f.Effective == r.Effective) &&
		(f.Trace == "" || f.Trace == r.Trace) && (f.Principal == "" || f.Principal == r.Principal) &&
		(f.Signer == "" || f.Signer == r.Signer) &&
		(f.Tool == "" || toolglob.Matches(f.Tool, string(r.Tool)))
}

// wanted is the filter as a call looks for it.
func (f *Filter) wanted() wanted { return wanted{f.terms(), f.matches} }

// terms returns terms that every wanted event has. The rare ones come first, so that blocks without
// them need no look at the others.
func (f *Filter) terms() (terms []term) {
	add := func(given bool, by field, text string) {
		if given {
			terms = append(terms, newTerm(by, text))
		}
	}
	add(f.Trace != "", byTrace, string(f.Trace))
	add(f.Principal != "", byPrincipal, f.Principal)
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

// toolTerm returns the term of a pattern: of a name the name, of a pattern the segments before its
// first wildcard; "" for a pattern that begins with one.
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

// spansOf returns the events below end that are within From and To, in ascending order. There are
// several spans in a ledger that was received at falling times.
func (x *Index) spansOf(ctx context.Context, s *log.State, v *view, f *Filter) ([]span, error) {
	all := span{0, v.end}
	if f.From.Given && f.From.At == 0 {
		all.begin = f.From.Index
	}
	if f.To.Given && f.To.At == 0 {
		all.end = min(all.end, f.To.Index)
	}
	fromTime, toTime := f.From.Given && f.From.At != 0, f.To.Given && f.To.At != 0
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

// risingPieces cuts the ledger at the events by which it went back to an earlier time (log.ClockKind).
// Within a piece received_at never falls.
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

// timeKey is an event whose time is kept.
type timeKey struct {
	tenant id.Tenant
	at     id.Index
}

// maxTimes is how many times are kept, about 100 bytes each.
const maxTimes = 1 << 16

// firstSince returns the first event of a piece that was received at a time or later. The events that
// it asks for are the same ones as the ledger grows, and their times are kept.
func (x *Index) firstSince(ctx context.Context, s *log.State, p span, at id.Instant) (id.Index, error) {
	before := p.begin // all events of the piece below it were received earlier
	for step := id.Index(1) << 62; step > 0; step >>= 1 {
		if step > p.end-before {
			continue
		}
		received, err := x.receivedAt(ctx, s, before+step-1)
		if err != nil {
			return 0, err
		}
		if received < at {
			before += step
		}
	}
	return before, nil
}

func (x *Index) receivedAt(ctx context.Context, s *log.State, at id.Index) (id.Instant, error) {
	key := timeKey{s.Identity().Tenant, at}
	if known, ok := x.times.Get(key); ok {
		return known, nil
	}
	e, err := x.ledgers.Event(ctx, s, at, storage.FieldRecord)
	if err != nil {
		return 0, fmt.Errorf("read time of event: %w", err)
	}
	x.times.Put(key, e.ReceivedAt)
	return e.ReceivedAt, nil
}
