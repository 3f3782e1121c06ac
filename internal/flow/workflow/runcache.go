package workflow

import (
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/records"
)

// maxKnownRuns bounds the cached runs.
const maxKnownRuns = 1 << 14

// newKnownRuns returns a cache of runs as they were last written by this process, so that a step need not read its run.
// If another process has written a newer version since, the append detects that, and the step is prepared again from
// the store.
func newKnownRuns() *cache.Map[place, records.Versioned[record]] {
	return cache.NewMap(cache.MapOptions[place, records.Versioned[record]]{Limit: maxKnownRuns})
}
