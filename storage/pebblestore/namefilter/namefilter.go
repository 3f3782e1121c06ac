// Package namefilter keeps in memory which names of events a store may have. Nearly every name that is searched is
// new, and a search in tables costs as much as writing an event.
//
// Invariants:
//
//   - A name that was added, or that a sweep read, is never absent in a later View.
//   - A ledger has a View once a sweep has read all its names. Names that are applied meanwhile are added, so none is
//     left out.
//   - About 2 bytes are kept for a name, and at most 43 MiB. A filter that is full begins anew, without any ledger.
package namefilter

import (
	"hash/maphash"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// Filter holds names of all ledgers of a store. View and its result may be used concurrently with everything. The
// other methods MUST be called one at a time, in the order in which names are applied.
type Filter struct {
	seed maphash.Seed // secret, so that a client can't choose names with the same bits
	most int          // layers

	mu      sync.RWMutex
	layers  []*layer
	ledgers map[id.Tenant]progress
	resets  int
}

// progress says how far the names of a ledger were read.
type progress struct {
	searched int    // names, before the sweep began
	next     []byte // key of the next name to be read, nil before the first
	whole    bool   // all were read
}

const (
	mostLayers  = 6       // for 22 million names
	mostLedgers = 1 << 16 // about 5 MB

	// searchesFirst is how many names of a ledger are searched in tables before its names are read: a ledger with
	// few events is left alone.
	searchesFirst = 16

	// Names that are read for a part of an append with so many events.
	sweptEach  = 8
	sweptFirst = 32
)

// New returns a filter without names.
func New() *Filter {
	return &Filter{seed: maphash.MakeSeed(), most: mostLayers, ledgers: make(map[id.Tenant]progress)}
}

// View is the names of a ledger as they were when it was taken. The zero value knows nothing.
type View struct {
	seed   maphash.Seed
	layers []*layer
	whole  bool
}

// View returns the names of a ledger, the zero value while they have not all been read.
func (f *Filter) View(t id.Tenant) View {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.ledgers[t].whole {
		return View{}
	}
	return View{seed: f.seed, layers: f.layers, whole: true}
}

// Absent reports whether it is certain that the store did not have a name of the ledger when the view was taken.
func (v View) Absent(name []byte) bool {
	if !v.whole {
		return false
	}
	h := maphash.Bytes(v.seed, name)
	for _, l := range v.layers {
		if l.mayHold(h) {
			return false
		}
	}
	return true
}

// Whole reports whether all names of the ledger are known.
func (v View) Whole() bool { return v.whole }

// Add adds a name of any ledger. It MUST be called after the name was applied, so that a sweep that begins later reads
// the name even if the filter began anew meanwhile.
func (f *Filter) Add(name []byte) {
	last := len(f.layers) - 1
	if last < 0 || f.layers[last].room == 0 {
		f.grow()
		last = len(f.layers) - 1
	}
	f.layers[last].addHash(maphash.Bytes(f.seed, name))
}

// grow adds a layer, or begins anew when there are enough.
func (f *Filter) grow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.layers) == f.most {
		f.reset()
	}
	layers := append(make([]*layer, 0, len(f.layers)+1), f.layers...) // views keep the old ones
	f.layers = append(layers, newLayer(len(f.layers)))
}

// reset forgets everything. The caller holds mu.
func (f *Filter) reset() {
	f.layers = nil
	clear(f.ledgers)
	f.resets++
}

// Due returns how many names of a ledger are to be read by Sweep, before so many of its names are searched. It is 0
// for a ledger that is read already, has been searched little, or has more events than fit.
func (f *Filter) Due(t id.Tenant, searched int, size id.Index) int {
	if size > id.Index(capacity(f.most)/2) {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p, known := f.ledgers[t]
	switch {
	case p.whole:
		return 0
	case p.searched >= searchesFirst:
		return sweptFirst + sweptEach*searched
	case !known && len(f.ledgers) >= mostLedgers:
		f.reset()
	}
	p.searched += searched
	f.ledgers[t] = p
	return 0
}
