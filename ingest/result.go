package ingest

import (
	"context"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/tenant/policystore"
)

// countBeforeResult returns how many of the first events may be appended together: the events before the first result
// whose intent is among them. That result is appended with the next events, because its intent must be durable first.
func countBeforeResult(events []*incomingEvent) int {
	var seen map[id.Event]struct{} // of events[:n]; nil before the first result
	for n, in := range events {
		if in.result != nil && seen == nil {
			seen = make(map[id.Event]struct{}, n+1)
			for _, before := range events[:n] {
				seen[before.envelope.EventID] = struct{}{}
			}
		}
		if in.result != nil {
			if _, waits := seen[in.result.Call.Parent]; waits {
				return n
			}
		}
		if seen != nil {
			seen[in.envelope.EventID] = struct{}{}
		}
	}
	return len(events)
}

// findIntents looks up the intents of the events of c that claim to be results. If the lookup fails, it refuses these
// events. It returns all others.
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
	others := make([]*incomingEvent, 0, len(events))
	for _, in := range events {
		switch {
		case in.result == nil:
		case err != nil:
			in.refuseWith(err)
			continue
		default:
			in.intent, intents = intents[0], intents[1:]
		}
		others = append(others, in)
	}
	return others
}
