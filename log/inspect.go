package log

import (
	"errors"
	"runtime"
	"sync"

	"github.com/agentledger/agentledger/storage"
)

// ErrDamaged is wrapped by what refuses to copy a ledger that is not whole. The
// text names the place.
var ErrDamaged = errors.New("damaged")

// inspector re-verifies the documents of many events at a time, on all cores:
// signatures are most of the work of a copy.
type inspector struct {
	workers []*examiner
	found   []*Finding // of each worker, the first
}

func newInspector(identity *Identity) *inspector {
	n := &inspector{found: make([]*Finding, runtime.GOMAXPROCS(0))}
	for i := range n.found {
		report := func(f Finding) {
			if n.found[i] == nil {
				n.found[i] = &f
			}
		}
		n.workers = append(n.workers, newExaminer(nil, identity, storage.Head{}, report))
	}
	return n
}

// inspect returns the first thing that is wrong with events, nil for nothing.
func (n *inspector) inspect(events []storage.Event) *Finding {
	clear(n.found)
	share := (len(events) + len(n.workers) - 1) / len(n.workers)
	var all sync.WaitGroup
	for _, w := range n.workers {
		mine := events[:min(share, len(events))]
		events = events[len(mine):]
		w.before = 0
		all.Go(func() {
			for i := range mine {
				w.documents(mine[i])
			}
		})
	}
	all.Wait()
	for _, f := range n.found {
		if f != nil {
			return f
		}
	}
	return nil
}

// counted is how many counted events of each month were inspected.
func (n *inspector) counted() map[month]uint64 {
	sum := make(map[month]uint64)
	for _, w := range n.workers {
		for m, count := range w.counted {
			sum[m] += count
		}
	}
	return sum
}
