package erasure

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/sysevent"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Limits of one erasure. A caller with more events makes several, each in a separate append.
const (
	MaxEvents = storage.MaxErased
	MaxRanges = event.MaxErasedRanges
)

// Selection is the set of envelopes that one append erases.
type Selection struct {
	// Ranges are indices of the state, at most MaxRanges ranges of at most MaxEvents indices in total. They may be
	// unordered and may overlap.
	Ranges []id.Range
	Reason string   // see event.Erasure
	Trace  id.Trace // of the statement; "" means ledger

	// Changes are written in the same append, if there is one. For example, they erase the payloads of approvals.
	Changes []storage.Change
	// Beside returns further statements and changes for the same append, given the number of events that lose their
	// envelope. With statements, there is an append even if no event loses its envelope. It may be nil.
	Beside func(erased int) (sysevent.Change, error)
}

// Result is the outcome of an erasure.
type Result struct {
	Receipt log.Receipt // of the statement; zero if nothing was appended
	Erased  int         // events that lost their envelope; 0 if nothing was appended
}

// EventReader reads the events of ledgers. log.Ledgers implements it.
type EventReader interface {
	Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error]
}

// EnvelopeEraser erases envelopes of stored events, in the same append as the ledger_envelope_erased event that lists
// them. An acknowledged erasure is durable. The service's own events are never erased, although ranges may include
// them. An event that was erased before keeps the marker of its first erasure, and an erasure that would erase
// nothing appends nothing.
//
// An erasure is committed only under the config version for which it was prepared. So a setting that forbids erasure,
// such as a legal hold, takes effect in time if its change increments the config version: the prepare function reads
// the setting, and is called again after each such change.
//
// Its methods may be called concurrently.
type EnvelopeEraser struct {
	Appender *sysevent.Appender
	Ledgers  EventReader
}

// Erase erases the envelopes that prepare selects, and returns when that is durable. It calls prepare with the state
// that guards the append, and again if the config version changed in the meantime. It returns an error of prepare
// unchanged. principal has the meaning of sysevent.Appender.Append.
//
// It returns the errors of prepare and of sysevent.Appender.Append, and fault.Invalid if the erasure exceeds a limit.
// After fault.OutcomeUnknown call Erase again: no event is erased twice.
func (e *EnvelopeEraser) Erase(
	ctx context.Context, t id.Tenant, principal string,
	prepare func(context.Context, *log.State) (Selection, error),
) (Result, error) {
	var p plan
	receipts, err := e.Appender.Append(ctx, t, principal,
		func(ctx context.Context, s *log.State) (sysevent.Change, error) {
			selected, err := prepare(ctx, s)
			if err != nil {
				return sysevent.Change{}, err
			}
			if p, err = e.planErasure(ctx, s, selected); err != nil {
				return sysevent.Change{}, err
			}
			return p.buildChange(selected)
		})
	if err != nil || len(receipts) == 0 {
		return Result{}, err
	}
	return Result{Receipt: receipts[0], Erased: p.count}, nil
}

// plan is one erasure: its statement and its effect.
type plan struct {
	statement event.Erasure
	erases    []id.Range // the indices of the statement that lose their envelope
	count     int        // number of these indices
}

// buildChange returns the whole change. It has no statements if there is nothing to erase.
func (p *plan) buildChange(selected Selection) (sysevent.Change, error) {
	act := sysevent.Change{Changes: selected.Changes, KeepConfigVersion: true}
	if p.count > 0 {
		act.Statements = []sysevent.Statement{{
			Kind: sysevent.EnvelopeErased, Payload: p.statement.Payload(), Trace: selected.Trace, Erases: p.erases,
		}}
	}
	if selected.Beside == nil {
		return act, nil
	}
	beside, err := selected.Beside(p.count)
	act.Statements = append(act.Statements, beside.Statements...)
	act.Changes = append(act.Changes, beside.Changes...)
	return act, err
}

// planErasure finds the events of the state that have an envelope to erase.
func (e *EnvelopeEraser) planErasure(ctx context.Context, s *log.State, selected Selection) (plan, error) {
	ranges, err := joinRanges(selected.Ranges, s.Size())
	if err != nil {
		return plan{}, err
	}
	p := plan{statement: event.Erasure{Reason: selected.Reason}}
	for _, r := range ranges {
		before := len(p.erases)
		for found, err := range e.Ledgers.Events(ctx, s, r.Begin, r.End, storage.FieldRecord|storage.FieldEnvelope) {
			if err != nil {
				return plan{}, fmt.Errorf("plan erasure: %w", err)
			}
			if found.ErasedBy >= s.Size() { // not known to be durable
				return plan{}, fault.New(fault.Unavailable, "An erasure of the organization is in progress")
			}
			if found.Envelope != nil && !event.ReservedAgent(string(found.Agent)) {
				p.addIndex(found.Index, before)
			}
		}
		if n := len(p.erases); n > before {
			p.statement.Ranges = append(p.statement.Ranges, id.Range{Begin: p.erases[before].Begin, End: p.erases[n-1].End})
		}
	}
	if p.count == 0 {
		return plan{}, nil
	}
	if err := p.statement.Validate(); err != nil {
		return plan{}, fault.Wrap(fault.Invalid, "Malformed erasure", err)
	}
	return p, nil
}

// addIndex adds an index to the ranges that start at position before.
func (p *plan) addIndex(i id.Index, before int) {
	p.count++
	if n := len(p.erases); n > before && p.erases[n-1].End == i {
		p.erases[n-1].End++
		return
	}
	p.erases = append(p.erases, id.Range{Begin: i, End: i + 1})
}

// joinRanges returns the same indices as ascending, disjoint ranges.
func joinRanges(ranges []id.Range, size id.Index) ([]id.Range, error) {
	ranges = slices.Clone(ranges)
	slices.SortFunc(ranges, func(a, b id.Range) int { return cmp.Compare(a.Begin, b.Begin) })
	joined, total := ranges[:0], 0
	for _, r := range ranges {
		if r.Begin >= r.End || r.End > size {
			return nil, fault.New(fault.Invalid, "There are no such events")
		}
		if n := len(joined); n > 0 && r.Begin <= joined[n-1].End {
			total -= joined[n-1].Len()
			joined[n-1].End = max(joined[n-1].End, r.End)
			r = joined[n-1]
		} else {
			joined = append(joined, r)
		}
		if total += min(r.Len(), MaxEvents+1); total > MaxEvents {
			return nil, fault.New(fault.Invalid, fmt.Sprintf("More than %d events at once", MaxEvents))
		}
	}
	if len(joined) > MaxRanges {
		return nil, fault.New(fault.Invalid, fmt.Sprintf("More than %d ranges at once", MaxRanges))
	}
	return joined, nil
}
