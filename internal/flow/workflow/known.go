package workflow

import (
	"github.com/agentledger/agentledger/internal/cache"
	"github.com/agentledger/agentledger/internal/records"
)

// maxKnownRuns bounds the runs that are remembered.
const maxKnownRuns = 1 << 14

// newKnownRuns returns a cache of runs as they were last written here, which spares a
// step the reading of its run. Another process may have written a newer version since.
// Then the append finds that version, and the step is prepared again from the store.
func newKnownRuns() *cache.Map[place, records.Versioned[record]] {
	return cache.NewMap(cache.MapOptions[place, records.Versioned[record]]{Limit: maxKnownRuns})
}
