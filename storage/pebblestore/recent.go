package pebblestore

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/storage"
)

// recentNames contains the event names that may be only in Pebble's memtables, with their indices. So a search for a
// name reads only the tables, where filters detect quickly that a name is absent. A memtable has no filter: searching
// one costs more than all other store accesses of an ingest.
//
// Invariant: a name that was applied is here, or in a table that every iterator created from now on sees. A generation
// contains the names of one log, which was the latest log after the names were applied. So the names are in that log or
// an older one. Pebble releases a log only when the log and all earlier logs are completely in tables. Memtables that
// Open replays are in tables when it returns. Only a read-only store keeps them in memory, and there a search includes
// the memtables.
type recentNames struct {
	log atomic.Uint64 // number of the latest log

	mu          sync.RWMutex
	generations []generation  // oldest first
	drops       atomic.Uint64 // calls of drop and forgetTenant; written under mu
}

// generation contains the names of one log.
type generation struct {
	log   uint64
	names map[nameKey]id.Index
}

// findName returns the index of a name, or NoIndex if it is not here.
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

// addNames adds the names of an append that was applied. It must not be called concurrently.
func (r *recentNames) addNames(names []claim) {
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

// drop removes the names of all logs up to the given one.
func (r *recentNames) drop(log uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.generations) > 0 && r.generations[0].log <= log {
		r.generations = r.generations[1:]
	}
	r.drops.Add(1)
}

// created records a new log. Pebble has released the log whose file the new one reuses.
func (r *recentNames) created(info pebble.WALCreateInfo) {
	if info.Err != nil {
		return
	}
	r.log.Store(uint64(info.FileNum))
	if info.RecycledFileNum != 0 {
		r.drop(uint64(info.RecycledFileNum))
	}
}

// deleted records that Pebble has released a log and does not reuse its file.
func (r *recentNames) deleted(info pebble.WALDeleteInfo) { r.drop(uint64(info.FileNum)) }

// nameSearch finds names. It must not be used concurrently.
type nameSearch struct {
	engine *Engine
	tables *pebble.Iterator // over the tables only; nil until needed
	drops  uint64           // value of recent.drops before tables was created
}

// index returns the index of a name, or NoIndex.
func (s *nameSearch) index(key *nameKey) (id.Index, error) {
	recent := s.engine.recent
	if index := recent.findName(key); index != storage.NoIndex {
		return index, nil
	}
	if s.tables != nil && s.drops != recent.drops.Load() { // names may have moved to tables that the iterator does not see
		if err := s.close(); err != nil {
			return 0, err
		}
	}
	if s.tables == nil {
		s.drops = recent.drops.Load()
		// DB.Get never uses the filters of the lowest level, where nearly all names are; this iterator does.
		// OnlyReadGuaranteedDurable limits an iterator to the tables.
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
