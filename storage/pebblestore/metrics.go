package pebblestore

import "context"

// Metrics are figures about the store, for telemetry.
type Metrics struct {
	DiskBytes      uint64 // all files of the store except the current log
	LogBytes       uint64 // log that a restart would have to replay
	MemTableBytes  uint64 // data that is not yet flushed to tables
	MemoryBytes    uint64 // memory of memtables, including unused ones, and of cached blocks
	CompactionDebt uint64 // estimated bytes that compaction has yet to process
	ReadAmp        int    // tables that a read may have to search
	CacheHits      int64  // block reads served by the cache since Open
	CacheMisses    int64  // block reads not served by the cache
}

// Metrics returns the current figures, or zero if the engine cannot be used. It takes a few microseconds.
func (e *Engine) Metrics() Metrics {
	if err := e.beginCall(context.Background()); err != nil {
		return Metrics{}
	}
	defer e.endCall()
	m := e.db.Metrics()
	return Metrics{
		DiskBytes:      m.DiskSpaceUsage(),
		LogBytes:       m.WAL.Size,
		MemTableBytes:  m.MemTable.Size,
		MemoryBytes:    m.MemTable.Size + m.MemTable.ZombieSize + uint64(m.BlockCache.Size),
		CompactionDebt: m.Compact.EstimatedDebt,
		ReadAmp:        m.ReadAmp(),
		CacheHits:      m.BlockCache.Hits,
		CacheMisses:    m.BlockCache.Misses,
	}
}
