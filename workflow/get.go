package workflow

import (
	"context"
	"fmt"

	"github.com/agentledger/agentledger/chain"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Event is one event of a run, as it lies in the ledger.
type Event struct {
	Placed
	Kind       string     // action_kind: ledger_run for start and end
	ReceivedAt id.Instant // the server's word
	Decision   id.Decision
	Step       *StepShown // nil for start and end

	policy chain.Policy
}

// StepShown is what an event of a step is of.
type StepShown struct {
	Key     string
	Attempt int
	Tool    id.Tool // "" for none
	Status  string
}

// Get returns a run to the ingest key that started it, for all others there is none,
// and at most limit of its events after the first `after` ones, in their order. next is
// where the following page begins, 0 at the end. A page may hold less than limit: what
// another process has just written comes with the following one.
func (w *Workflows) Get(ctx context.Context, t id.Tenant, ingestKey string, name ID, after, limit int) (run Run, events []Event, next int, err error) {
	r, err := w.own(ctx, t, ingestKey, name)
	if err != nil {
		return Run{}, nil, 0, err
	}
	steps, err := w.steps(ctx, t, name)
	if err != nil {
		return Run{}, nil, 0, err
	}
	run = r.Value.shown(name, w.now())
	if r.Value.Result == nil {
		run.Result.Recorded, run.Result.Events = different(steps), 1+len(steps)
	}
	all := r.Value.events(steps)
	if after > len(all) {
		after = len(all)
	}
	page := all[after:min(after+limit, len(all))]
	if events, err = w.page(ctx, t, page); err != nil {
		return Run{}, nil, 0, err
	}
	if end := after + len(events); end < len(all) {
		next = end
	}
	return run, events, next, nil
}

// named is an event of a run and what it is of.
type named struct {
	event id.Event
	step  *stepRecord // nil for start and end
}

// events returns what a run has in the ledger, in its order.
func (r *record) events(steps []stepRecord) []named {
	all := []named{{event: r.Started}}
	for i := range steps {
		all = append(all, named{steps[i].Event, &steps[i]})
	}
	if r.Ended != "" {
		all = append(all, named{event: r.Ended})
	}
	return all
}

// page reads events of a run.
func (w *Workflows) page(ctx context.Context, t id.Tenant, page []named) ([]Event, error) {
	s, err := w.ledgers.State(ctx, t)
	if err != nil {
		return nil, err
	}
	names := make([]id.Event, len(page))
	for i := range page {
		names[i] = page[i].event
	}
	at, err := w.ledgers.Locate(ctx, s, names)
	if err != nil {
		return nil, err
	}
	events := make([]Event, len(page))
	for i := range page {
		if at[i] == storage.NoIndex { // it is durable, and will be published in a moment
			return events[:i], nil
		}
		if events[i], err = w.event(ctx, s, at[i]); err != nil {
			return nil, fmt.Errorf("read event of a run: %w", err)
		}
		if step := page[i].step; step != nil {
			events[i].Step = &StepShown{Key: step.Key, Attempt: step.Attempt, Tool: step.Tool, Status: step.Status}
		}
	}
	return events, nil
}

// event reads one event of a run.
func (w *Workflows) event(ctx context.Context, s *log.State, at id.Index) (Event, error) {
	e, err := w.ledgers.Event(ctx, s, at, storage.Records)
	if err != nil {
		return Event{}, err
	}
	record, err := chain.ParseRecord(e.Record)
	if err != nil {
		return Event{}, unreadable("read event", err)
	}
	return Event{
		Placed: Placed{Event: e.ID, Index: e.Index, Hash: log.EntryOf(e).Hash(), ChainValid: s.Fault().Level == log.Healthy, Replayed: true},
		Kind:   e.ActionKind, ReceivedAt: e.ReceivedAt, Decision: e.Effective, policy: record.Policy,
	}, nil
}
