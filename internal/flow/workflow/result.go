package workflow

import (
	"context"

	"github.com/agentledger/agentledger/event"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
)

// findIntents prepares new steps and finds the intents of the steps that are results of earlier events. The payload
// contains the reference, because a step has no other member for it.
func (r *recording) findIntents(ctx context.Context, fresh []int) error {
	var results []policystore.Result
	var of []*making
	for _, i := range fresh {
		m := &making{result: &r.results[i]}
		r.made = append(r.made, m)
		step := &r.steps[i]
		if step.Tool == "" {
			continue
		}
		m.says = policystore.Result{Agent: r.run.Value.Agent, Tool: step.Tool, Call: event.ParseCall(step.Payload), OnBehalfOf: step.OnBehalfOf}
		if m.says.Call.IsResult() {
			results, of = append(results, m.says), append(of, m)
		}
	}
	if len(results) == 0 {
		return nil
	}
	intents, err := r.workflows.intents.Find(ctx, r.place.tenant, results)
	for n := range intents {
		of[n].intent = intents[n]
	}
	return err
}
