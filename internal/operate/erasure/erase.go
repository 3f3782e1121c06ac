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

// The bounds of one erasure. A caller with more makes several, each in an append of its own.
const (
	MaxEvents = storage.MaxErased
	MaxRanges = event.MaxErasedRanges
)

// Selection is the envelopes that one append takes away.
type Selection struct {
	// Ranges are indices of the state, at most MaxRanges ranges of at most MaxEvents indices together.
	// They may lie in any order and overlap.
	Ranges []id.Range
	Reason string   // see event.Erasure
	Trace  id.Trace // of the statement; "": ledger

	// Changes are written in the same append, if there is one. For example, they take the payload out
	// of approvals.
	Changes []storage.Change
	// Beside returns other statements and changes of the same append, told how many events lose their envelope;
	// nil: none. With statements there is an append also when no event does.
	Beside func(erased int) (sysevent.Change, error)
}

// Result is the outcome of an erasure.
type Result struct {
	Receipt log.Receipt // of the statement; zero when nothing was appended
	Erased  int         // events that lost their envelope by it, 0 when nothing was appended
}

// EventReader reads the events of ledgers (log.Log).
type EventReader interface {
	Events(ctx context.Context, s *log.State, begin, end id.Index, parts storage.Fields) iter.Seq2[storage.Event, error]
}

// EnvelopeEraser takes envelopes of stored events away, in the same append as the ledger_envelope_erased event that names
// them. An erasure that is acknowledged is durable. The service's own events are never erased, although ranges may span
// them. An event that was erased before keeps the marker of its first erasure, and an erasure that would take nothing away
// appends nothing.
//
// An erasure lands only under the config version that it was prepared under. So a setting that forbids erasure, such as a
// legal hold, is in time if its change raises the config version: the prepare function reads the setting, and is called
// again after each such change.
//
// Its methods may be called concurrently.
type EnvelopeEraser struct {
	Appender *sysevent.Appender
	Ledgers  EventReader
}

// Erase takes the envelopes away that prepare names, and returns when that is durable. prepare is
// called under the state that guards the append, and again when the config version moved meanwhile.
// An error of prepare is returned as it is. principal is that of sysevent.Appender.
//
// Errors are those of prepare and of sysevent.Appender.Append, and fault.Invalid for an erasure out
// of bounds. After fault.OutcomeUnknown call Erase again: no event is erased twice.
func (e *EnvelopeEraser) Erase(
	ctx context.Context, t id.Tenant, principal string,
	prepare func(context.Context, *log.State) (Selection, error),
) (Result, error) {
	var p plan
	receipts, err := e.Appender.Append(ctx, t, principal,
		func(ctx context.Context, s *log.State) (sysevent.Change, error) {
			asked, err := prepare(ctx, s)
			if err != nil {
				return sysevent.Change{}, err
			}
			if p, err = e.planErasure(ctx, s, asked); err != nil {
				return sysevent.Change{}, err
			}
			return p.buildChange(asked)
		})
	if err != nil || len(receipts) == 0 {
		return Result{}, err
	}
	return Result{Receipt: receipts[0], Erased: p.count}, nil
}

// plan is one erasure as it is stated and done.
type plan struct {
	said   event.Erasure
	erases []id.Range // the indices of said that lose their envelope
	count  int        // of these indices
}

// buildChange returns the whole change, without statements when there is nothing to do.
func (p *plan) buildChange(asked Selection) (sysevent.Change, error) {
	act := sysevent.Change{Changes: asked.Changes, KeepConfigVersion: true}
	if p.count > 0 {
		act.Statements = []sysevent.Statement{{
			Kind: sysevent.EnvelopeErased, Payload: p.said.Payload(), Trace: asked.Trace, Erases: p.erases,
		}}
	}
	if asked.Beside == nil {
		return act, nil
	}
	beside, err := asked.Beside(p.count)
	act.Statements = append(act.Statements, beside.Statements...)
	act.Changes = append(act.Changes, beside.Changes...)
	return act, err
}

// planErasure finds the events of the state that have an envelope to lose.
func (e *EnvelopeEraser) planErasure(ctx context.Context, s *log.State, asked Selection) (plan, error) {
	ranges, err := joinRanges(asked.Ranges, s.Size())
	if err != nil {
		return plan{}, err
	}
	p := plan{said: event.Erasure{Reason: asked.Reason}}
	for _, r := range ranges {
		before := len(p.erases)
		for found, err := range e.Ledgers.Events(ctx, s, r.Begin, r.End, storage.FieldRecord|storage.FieldEnvelope) {
			if err != nil {
				return plan{}, fmt.Errorf("plan erasure: %w", err)
			}
			if found.ErasedBy >= s.Size() { // it is not known to be durable
				return plan{}, fault.New(fault.Unavailable, "An erasure of the organization is under way")
			}
			if found.Envelope != nil && !event.ReservedAgent(string(found.Agent)) {
				p.addIndex(found.Index, before)
			}
		}
		if n := len(p.erases); n > before {
			p.said.Ranges = append(p.said.Ranges, id.Range{Begin: p.erases[before].Begin, End: p.erases[n-1].End})
		}
	}
	if p.count == 0 {
		return plan{}, nil
	}
	if err := p.said.Validate(); err != nil {
		return plan{}, fault.Wrap(fault.Invalid, "Malformed erasure", err)
	}
	return p, nil
}

// addIndex adds an index to the ranges since before.
func (p *plan) addIndex(i id.Index, before int) {
	p.count++
	if n := len(p.erases); n > before && p.erases[n-1].End == i {
		p.erases[n-1].End++
		return
	}
	p.erases = append(p.erases, id.Range{Begin: i, End: i + 1})
}

// joinRanges returns the same indices as ascending ranges without common indices.
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
