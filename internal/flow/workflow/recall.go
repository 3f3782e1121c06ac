package workflow

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/log"
	"github.com/agentledger/agentledger/storage"
)

// readRun returns the cached run, or reads it from the store.
func (r *recording) readRun(ctx context.Context) (err error) {
	w, remembered := r.workflows, false
	if !r.prepared {
		r.run, remembered = w.known.Get(r.place)
	}
	r.prepared = true
	if !remembered || r.run.Value.statusAt(w.currentTime()) != Running { // another process may have received a step
		r.run, err = w.readRun(ctx, r.place.tenant, r.place.name)
	}
	if err == nil && r.run.Value.IngestKeyID != r.ingestKey {
		err = errNotFound()
	}
	return err
}

// recallSteps returns the results of the steps that are already in the ledger, and the positions of the others in the
// request.
func (r *recording) recallSteps(ctx context.Context, s *log.State) (fresh []int, err error) {
	events := make([]id.Event, len(r.steps))
	for i := range r.steps {
		events[i] = r.run.Value.stepEvent(r.steps[i].Key, r.steps[i].Attempt)
	}
	at, err := r.workflows.ledgers.Locate(ctx, s, events)
	if err != nil {
		return nil, err
	}
	var known []id.Index
	for i := range at {
		if at[i] == storage.NoIndex {
			fresh = append(fresh, i)
		} else {
			known = append(known, at[i])
		}
	}
	shown, err := r.workflows.readEvents(ctx, s, known)
	if err != nil {
		return nil, err
	}
	for i := range at {
		if at[i] == storage.NoIndex {
			continue
		}
		where := ""
		if len(r.steps) > 1 {
			where = fmt.Sprintf("[%d].", i)
		}
		if r.results[i], err = r.workflows.describeRecalled(ctx, s, r.place, &r.steps[i], shown[0], where); err != nil {
			return nil, err
		}
		shown = shown[1:]
	}
	return fresh, nil
}

// describeRecalled returns the result of a step that is already in the ledger.
func (w *Workflows) describeRecalled(
	ctx context.Context, s *log.State, p place, step *Step, shown Event, where string,
) (Recorded, error) {
	known, err := w.stores.steps.Get(ctx, p.tenant, stepName(p.name, shown.Event))
	if err == nil && !known.Exists() {
		err = errUnreadable("read step", errors.New("an event of a step without its record"))
	}
	if err != nil {
		return Recorded{}, err
	}
	digest, err := step.digestStep()
	if err != nil {
		return Recorded{}, err
	}
	if known.Value.Digest != digest {
		return Recorded{}, errInvalid(where + "step_key and attempt were used with another step")
	}
	consumed, err := w.recallConsumed(ctx, s, known.Value.Approval)
	return Recorded{
		Policy:   shown.policy,
		Reason:   reasonOfError(shown.policy, known.Value.Reasons),
		Placed:   shown.Placed,
		Consumed: consumed,
	}, err
}

func reasonOfError(p event.Policy, reasons map[string]string) string {
	switch {
	case p.Intent != "":
		return "The step is the result of " + string(p.Intent) + " and takes its decision."
	case !p.Evaluated:
		return noTool
	}
	return reasons[p.RuleID]
}
