package ingest

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
)

// countBeforeResult returns how many of the first events may be appended at once: all events before
// the first result whose intent is among them. That result goes with the next events,
// because its intent has to be durable first.
func countBeforeResult(events []*incomingEvent) int {
	var met map[id.Event]struct{} // of events[:n], nil while no result was met
	for n, in := range events {
		if in.result != nil && met == nil {
			met = make(map[id.Event]struct{}, n+1)
			for _, before := range events[:n] {
				met[before.envelope.EventID] = struct{}{}
			}
		}
		if in.result != nil {
			if _, waits := met[in.result.Call.Parent]; waits {
				return n
			}
		}
		if met != nil {
			met[in.envelope.EventID] = struct{}{}
		}
	}
	return len(events)
}

// findIntents looks up the intents of those events of c that claim to be results. When the
// look-up fails it refuses these events. It returns all others.
func (s *Server) findIntents(ctx context.Context, c caller, events []*incomingEvent) []*incomingEvent {
	var results []policystore.Result
	for _, in := range events {
		if in.result != nil {
			results = append(results, *in.result)
		}
	}
	if len(results) == 0 {
		return events
	}
	intents, err := s.intents.Find(ctx, c.Tenant, results)
	kept := make([]*incomingEvent, 0, len(events))
	for _, in := range events {
		switch {
		case in.result == nil:
		case err != nil:
			in.refuseWith(err)
			continue
		default:
			in.intent, intents = intents[0], intents[1:]
		}
		kept = append(kept, in)
	}
	return kept
}
