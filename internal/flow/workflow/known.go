package workflow

import (
	"sync"

	"github.com/agentledger/agentledger/internal/records"
)

// maxKnown bounds the runs that are remembered.
const maxKnown = 1 << 14

// knownRuns remembers runs as they were last written here, which spares a step the reading of its
// run. A newer write of another process is not known. Then the append finds the record in another
// version, and the step is prepared again from the store.
type knownRuns struct {
	mu   sync.Mutex
	runs map[place]records.Versioned[record]
}

func (k *knownRuns) findRun(p place) (records.Versioned[record], bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.runs[p]
	return r, ok
}

// rememberRun keeps a run, in place of any other when there is no room.
func (k *knownRuns) rememberRun(p place, r records.Versioned[record]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.runs == nil {
		k.runs = make(map[place]records.Versioned[record])
	}
	if _, known := k.runs[p]; !known && len(k.runs) >= maxKnown {
		for other := range k.runs {
			delete(k.runs, other)
			break
		}
	}
	k.runs[p] = r
}

func (k *knownRuns) forgetRun(p place) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.runs, p)
}
