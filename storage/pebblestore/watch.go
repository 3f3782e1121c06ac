package pebblestore

import (
	"strings"
	"sync/atomic"

	"github.com/agentledger/agentledger/storage"
)

// WatchKinds returns a function that returns a counter. The counter increases when a record of one of the kinds is
// written or removed, in any partition, before that write is acknowledged. If a caller gets the same count before and
// after it reads such records, the records have not changed in between. The function may be called concurrently, and
// after Close.
func (e *Engine) WatchKinds(kinds ...storage.Kind) func() uint64 {
	writes := new(atomic.Uint64)
	e.write.Lock()
	defer e.write.Unlock()
	if e.write.watches == nil {
		e.write.watches = make(map[storage.Kind][]*atomic.Uint64)
	}
	for _, k := range kinds {
		e.write.watches[k] = append(e.write.watches[k], writes)
	}
	return writes.Load
}

// countWrites increases the counters of WatchKinds for the given keys of records that were applied. The caller must
// hold the write lock.
func (e *Engine) countWrites(records []string) {
	if len(e.write.watches) == 0 {
		return
	}
	for _, key := range records {
		kind, _, _ := strings.Cut(key[prefixLen:], "\x00")
		for _, writes := range e.write.watches[storage.Kind(kind)] {
			writes.Add(1)
		}
	}
}
