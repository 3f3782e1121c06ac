package pebblestore

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// recentNames holds the names of events that Pebble may have in its memtables alone, each with its index. So a search
// for a name looks into the tables only, where filters tell at once that a name is absent. A memtable has no filter.
// A search in one costs more than all other requests of an ingest to the store.
//
// Invariant: a name that was applied is here, or in a table that every iterator made from now on sees. A generation
// has the names of one log, which was the newest log after the names were applied. So the names are in that log or in
// an older one. Pebble is done with a log only when the whole log, and all logs before it, are in tables. Memtables
// that Open replays are in tables when it returns. Only a store that is open read-only keeps them in memory, and a
// search looks there too.
type recentNames struct {
	log atomic.Uint64 // number of the newest log

	mu          sync.RWMutex
	generations []generation  // oldest first
	drops       atomic.Uint64 // calls of drop and forgetTenant; written under mu
}

// generation is the names of one log.
type generation struct {
	log   uint64
	names map[nameKey]id.Index
}

// findName returns the index of a name that is here, else NoIndex.
func (r *recentNames) findName(key *nameKey) id.Index {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for i := len(r.generations) - 1; i >= 0; i-- {
		if index, ok := r.generations[i].names[*key]; ok {
			return index
		}
	}
	return storage.NoIndex
}

// addName tells the names of an append that was applied. One caller at a time.
func (r *recentNames) addName(names []claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log.Load()
	if last := len(r.generations) - 1; last < 0 || r.generations[last].log != log {
		usual := 0
		if last >= 0 {
			usual = len(r.generations[last].names)
		}
		r.generations = append(r.generations, generation{log: log, names: make(map[nameKey]id.Index, usual)})
	}
	newest := r.generations[len(r.generations)-1].names
	for i := range names {
		newest[names[i].key] = names[i].index
	}
}

// drop forgets the names of the logs up to a number.
func (r *recentNames) drop(log uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.generations) > 0 && r.generations[0].log <= log {
		r.generations = r.generations[1:]
	}
	r.drops.Add(1)
}

// created notes each new log. Pebble is done with the log whose file the new one takes.
func (r *recentNames) created(info pebble.WALCreateInfo) {
	if info.Err != nil {
		return
	}
	r.log.Store(uint64(info.FileNum))
	if info.RecycledFileNum != 0 {
		r.drop(uint64(info.RecycledFileNum))
	}
}

// deleted notes each log that Pebble is done with and does not use again.
func (r *recentNames) deleted(info pebble.WALDeleteInfo) { r.drop(uint64(info.FileNum)) }

// nameSearch finds names, for one goroutine.
type nameSearch struct {
	engine *Engine
	tables *pebble.Iterator // over the tables alone; nil until one is needed
	drops  uint64           // of recent names before tables was made
}

// index returns the index of a name, or NoIndex.
func (s *nameSearch) index(key *nameKey) (id.Index, error) {
	recent := s.engine.recent
	if index := recent.findName(key); index != storage.NoIndex {
		return index, nil
	}
	if s.tables != nil && s.drops != recent.drops.Load() { // names may have gone to tables that it does not see
		if err := s.close(); err != nil {
			return 0, err
		}
	}
	if s.tables == nil {
		s.drops = recent.drops.Load()
		// DB.Get never reads the filters of the lowest level, where nearly all names are, but this
		// iterator does. OnlyReadGuaranteedDurable limits an iterator to the tables.
		it, err := s.engine.db.NewIter(&pebble.IterOptions{UseL6Filters: true, OnlyReadGuaranteedDurable: !s.engine.readOnly})
		if err != nil {
			return 0, readError(err)
		}
		s.tables = it
	}
	return seekName(s.tables, key[:])
}

func (s *nameSearch) close() error {
	if s.tables == nil {
		return nil
	}
	err := readError(s.tables.Close())
	s.tables = nil
	return err
}

// seekName returns the index stored under the key of a name, or NoIndex.
func seekName(it *pebble.Iterator, key []byte) (id.Index, error) {
	if !it.SeekPrefixGE(key) {
		return storage.NoIndex, readError(it.Error())
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return 0, readError(err)
	}
	n, err := parseNumber(v)
	if err == nil && id.Index(n) == storage.NoIndex {
		err = corruptValue("index of a name")
	}
	return id.Index(n), err
}
