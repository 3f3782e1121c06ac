package status

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/agentledger/agentledger/id"
)

// describeWorst returns the ledgers with faults, followed by the ledgers that have waited longest for witnesses.
// Names that can't be read are omitted.
func (s *Service) describeWorst(ctx context.Context, now time.Time) []Ledger {
	waits := s.Waits()
	tenants := s.Worst()
	for _, t := range longestWaiting(waits) {
		if !slices.Contains(tenants, t) {
			tenants = append(tenants, t)
		}
	}
	all := []Ledger{}
	for _, t := range tenants {
		l := s.describeLedger(ctx, t)
		if since, waiting := waits[t]; waiting {
			l.WaitSeconds = max(0, now.Sub(since).Seconds())
		}
		all = append(all, l)
	}
	return all
}

// longestWaiting returns at most maxWaiting ledgers, the longest wait first.
func longestWaiting(waits map[id.Tenant]time.Time) []id.Tenant {
	all := slices.SortedFunc(maps.Keys(waits), func(a, b id.Tenant) int {
		return cmp.Or(waits[a].Compare(waits[b]), cmp.Compare(a, b))
	})
	return all[:min(len(all), maxWaiting)]
}

func (s *Service) describeLedger(ctx context.Context, t id.Tenant) (l Ledger) {
	if named, err := s.Orgs.Summary(ctx, t); err == nil {
		l.OrganizationID, l.Slug = named.ID, named.Slug
	}
	state, err := s.Ledgers.State(ctx, t)
	if err != nil {
		return l
	}
	l.Origin, l.Size = state.Identity().Origin, state.Shown().Size
	l.Level, l.Reason = string(state.Fault().Level), state.Fault().Reason
	if at := state.LastReceived(); at != 0 {
		l.NewestEventAt = &at
	}
	return l
}
