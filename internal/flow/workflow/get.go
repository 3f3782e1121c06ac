package workflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// Event is one event of a run as stored in the ledger.
type Event struct {
	Placed
	Kind       string     // action_kind: ledger_run for start and end
	ReceivedAt id.Instant // according to the server
	Decision   id.Decision
	Step       *StepShown // nil for start and end

	policy event.Policy
}

// StepShown is the step of a run that an event belongs to.
type StepShown struct {
	Key     string
	Attempt int
	Tool    id.Tool // "" if none
	Status  string
}

// Get returns a run to the ingest key that started it. For all others the run does not exist. It also returns at most
// limit of its events after the first `after` ones, in order. next is the start of the following page, or 0 at the end.
// A page may contain fewer events, because an event that another process has just written is on the following page.
func (w *Workflows) Get(
	ctx context.Context, t id.Tenant, ingestKey string, name ID, after, limit int,
) (run Run, events []Event, next int, err error) {
	r, err := w.readOwnRun(ctx, t, ingestKey, name)
	if err != nil {
		return Run{}, nil, 0, err
	}
	return w.toView(ctx, t, name, &r.Value, after, limit)
}

// Find is Get for the organization's users, who may see all its runs.
func (w *Workflows) Find(
	ctx context.Context, t id.Tenant, name ID, after, limit int,
) (run Run, events []Event, next int, err error) {
	r, err := w.readRun(ctx, t, name)
	if err != nil {
		return Run{}, nil, 0, err
	}
	return w.toView(ctx, t, name, &r.Value, after, limit)
}

func (w *Workflows) toView(
	ctx context.Context, t id.Tenant, name ID, r *record, after, limit int,
) (run Run, events []Event, next int, err error) {
	end := min(after+limit, r.recordedEvents())
	page, err := w.readNamed(ctx, t, name, r, min(after, end), end)
	if err != nil {
		return Run{}, nil, 0, err
	}
	if events, err = w.readPage(ctx, t, page); err != nil {
		return Run{}, nil, 0, err
	}
	if shown := after + len(events); shown < r.recordedEvents() {
		next = shown
	}
	return r.toRun(name, w.currentTime()), events, next, nil
}

// recordedEvents returns the number of events of a run: start, steps and, once it is recorded, the end.
func (r *record) recordedEvents() int {
	if r.Ended != "" {
		return r.Steps + 2
	}
	return r.Steps + 1
}

// named is an event of a run with the step that it belongs to.
type named struct {
	event id.Event
	step  *listedStep // nil for start and end
}

// readNamed returns the events [begin, end) of a run, in the order of the ledger.
func (w *Workflows) readNamed(ctx context.Context, t id.Tenant, name ID, r *record, begin, end int) ([]named, error) {
	var page []named
	if begin == 0 && end > 0 {
		page = append(page, named{event: r.Started})
	}
	if first, last := max(begin, 1), min(end-1, r.Steps); first <= last {
		steps, err := w.readSteps(ctx, t, name, first, last)
		if err != nil {
			return nil, err
		}
		for i := range steps {
			page = append(page, named{steps[i].Event, &steps[i]})
		}
	}
	if end == r.Steps+2 && begin < end {
		page = append(page, named{event: r.Ended})
	}
	return page, nil
}

// readPage reads events of a run.
func (w *Workflows) readPage(ctx context.Context, t id.Tenant, page []named) ([]Event, error) {
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
	if late := slices.Index(at, storage.NoIndex); late >= 0 { // it is durable and not published yet
		at = at[:late]
	}
	events, err := w.readEvents(ctx, s, at)
	if err != nil {
		return nil, err
	}
	for i := range events {
		if step := page[i].step; step != nil {
			events[i].Step = &StepShown{Key: step.Key, Attempt: step.Attempt, Tool: step.Tool, Status: step.Status}
		}
	}
	return events, nil
}

// readEvents reads events of runs by their indices. Consecutive ones are read together.
func (w *Workflows) readEvents(ctx context.Context, s *log.State, at []id.Index) ([]Event, error) {
	events := make([]Event, 0, len(at))
	for len(events) < len(at) {
		rest := at[len(events):]
		n := 1
		for n < len(rest) && rest[n] == rest[n-1]+1 {
			n++
		}
		for e, err := range w.ledgers.Events(ctx, s, rest[0], rest[0]+id.Index(n), storage.FieldRecord) {
			if err != nil {
				return nil, fmt.Errorf("read events of a run: %w", err)
			}
			shown, err := eventOfStep(s, e)
			if err != nil {
				return nil, err
			}
			events = append(events, shown)
		}
		if len(events) != len(at)-len(rest)+n {
			return nil, errUnreadable("read events of a run",
				fmt.Errorf("events after %d are missing: %w", rest[0], storage.ErrCorrupt))
		}
	}
	return events, nil
}

func eventOfStep(s *log.State, e storage.Event) (Event, error) {
	record, err := event.ParseRecord(e.Record)
	if err != nil {
		return Event{}, errUnreadable("read event", err)
	}
	return Event{
		Placed: Placed{
			Event:      e.ID,
			Index:      e.Index,
			Hash:       log.EntryOf(e).Hash(),
			ChainValid: s.Fault().Level == log.Healthy,
			Replayed:   true,
		},
		Kind: e.ActionKind, ReceivedAt: e.ReceivedAt, Decision: e.Effective, policy: record.Policy,
	}, nil
}
