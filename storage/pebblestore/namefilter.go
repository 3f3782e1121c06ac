package pebblestore

import (
	"hash/maphash"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// nameFilter holds names of all ledgers of a store. View and its result may be used concurrently with everything. The
// other methods MUST be called one at a time, in the order in which names are applied.
type nameFilter struct {
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

	// nameSource that are read for a part of an append with so many events.
	sweptEach  = 8
	sweptFirst = 32
)

// newNameFilter returns a filter without names.
func newNameFilter() *nameFilter {
	return &nameFilter{seed: maphash.MakeSeed(), most: mostLayers, ledgers: make(map[id.Tenant]progress)}
}

// nameView is the names of a ledger as they were when it was taken. The zero value knows nothing.
type nameView struct {
	seed   maphash.Seed
	layers []*layer
	whole  bool
}

// nameView returns the names of a ledger, the zero value while they have not all been read.
func (f *nameFilter) View(t id.Tenant) nameView {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.ledgers[t].whole {
		return nameView{}
	}
	return nameView{seed: f.seed, layers: f.layers, whole: true}
}

// Absent reports whether it is certain that the store did not have a name of the ledger when the view was taken.
func (v nameView) Absent(name []byte) bool {
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
func (v nameView) Whole() bool { return v.whole }

// Add adds a name of any ledger. It MUST be called after the name was applied, so that a sweep that begins later reads
// the name even if the filter began anew meanwhile.
func (f *nameFilter) Add(name []byte) {
	last := len(f.layers) - 1
	if last < 0 || f.layers[last].room == 0 {
		f.grow()
		last = len(f.layers) - 1
	}
	f.layers[last].addHash(maphash.Bytes(f.seed, name))
}

// grow adds a layer, or begins anew when there are enough.
func (f *nameFilter) grow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.layers) == f.most {
		f.reset()
	}
	layers := append(make([]*layer, 0, len(f.layers)+1), f.layers...) // views keep the old ones
	f.layers = append(layers, newLayer(len(f.layers)))
}

// reset forgets everything. The caller holds mu.
func (f *nameFilter) reset() {
	f.layers = nil
	clear(f.ledgers)
	f.resets++
}

// Due returns how many names of a ledger are to be read by Sweep, before so many of its names are searched. It is 0
// for a ledger that is read already, has been searched little, or has more events than fit.
func (f *nameFilter) Due(t id.Tenant, searched int, size id.Index) int {
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
