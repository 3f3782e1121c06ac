package pebblestore

import (
	"hash/maphash"
	"sync"

	"github.com/agentledger/agentledger/id"
)

// nameFilter records in memory which event names a store may contain, in Bloom filters. Nearly every name that is looked up
// is new, and looking it up in the tables would cost as much as writing an event.
//
//   - A name that was added or read by a sweep is never absent in a later View.
//   - A ledger has a View once a sweep has read all its names. Names that are applied during the sweep are added, so none is
//     missed.
//   - The filter takes about 2 bytes per name and at most 43 MiB. When it is full it starts again, without any ledger.
//
// View and its result may be used concurrently with everything. The other methods must be called one at a time, in the
// order in which names are applied.
type nameFilter struct {
	seed maphash.Seed // secret, so that a client can't choose names with the same bits
	most int          // maximum number of layers

	mu      sync.RWMutex
	layers  []*layer
	ledgers map[id.Tenant]progress
	resets  int
}

// progress tracks how many names of a ledger have been read.
type progress struct {
	searched int    // names looked up before the sweep started
	next     []byte // key of the next name to read, or nil before the first
	whole    bool   // whether all have been read
}

const (
	maxLayers  = 6       // for 22 million names
	maxLedgers = 1 << 16 // about 5 MB

	// searchesFirst is the number of a ledger's names that are looked up in tables before a sweep starts. Ledgers with
	// few events never reach it.
	searchesFirst = 16

	// An append reads sweptFirst names, plus sweptEach for each name that it looks up.
	sweptEach  = 8
	sweptFirst = 32
)

// newNameFilter returns a filter without names.
func newNameFilter() *nameFilter {
	return &nameFilter{seed: maphash.MakeSeed(), most: maxLayers, ledgers: make(map[id.Tenant]progress)}
}

// nameView is a snapshot of the names of a ledger. The zero value knows no names.
type nameView struct {
	seed   maphash.Seed
	layers []*layer
	whole  bool
}

// View returns the names of a ledger, or the zero value if they have not all been read.
func (f *nameFilter) View(t id.Tenant) nameView {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.ledgers[t].whole {
		return nameView{}
	}
	return nameView{seed: f.seed, layers: f.layers, whole: true}
}

// Absent reports whether the store certainly did not have a name of the ledger when the view was taken.
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

// Add adds a name of any ledger. It must be called after the name was applied, so that a later sweep reads the name even
// if the filter was reset in the meantime.
func (f *nameFilter) Add(name []byte) {
	last := len(f.layers) - 1
	if last < 0 || f.layers[last].room == 0 {
		f.grow()
		last = len(f.layers) - 1
	}
	f.layers[last].addHash(maphash.Bytes(f.seed, name))
}

// grow adds a layer. If the filter is full, it is reset first.
func (f *nameFilter) grow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.layers) == f.most {
		f.reset()
	}
	layers := append(make([]*layer, 0, len(f.layers)+1), f.layers...) // existing views keep the old layers
	f.layers = append(layers, newLayer(len(f.layers)))
}

// reset removes all names. The caller must hold mu.
func (f *nameFilter) reset() {
	f.layers = nil
	clear(f.ledgers)
	f.resets++
}

// Due returns how many names of a ledger Sweep should read before the given number of its names is looked up. It returns
// 0 if the ledger has been read, if few of its names have been looked up, or if it has more events than fit.
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
	case !known && len(f.ledgers) >= maxLedgers:
		f.reset()
	}
	p.searched += searched
	f.ledgers[t] = p
	return 0
}
