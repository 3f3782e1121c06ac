package pebblestore

import "context"

// Metrics says how a store is doing, for telemetry.
type Metrics struct {
	DiskBytes      uint64 // all files of the store but the log being written
	LogBytes       uint64 // log that a restart would have to replay
	MemTableBytes  uint64 // written and not flushed to tables yet
	CompactionDebt uint64 // bytes that compaction has yet to work through, estimated
	ReadAmp        int    // tables that a read may have to look into
	CacheHits      int64  // blocks found in the cache since Open
	CacheMisses    int64  // blocks that were not
}

// Metrics returns figures of the moment, zero when the engine can't be used. It takes some microseconds.
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
		CompactionDebt: m.Compact.EstimatedDebt,
		ReadAmp:        m.ReadAmp(),
		CacheHits:      m.BlockCache.Hits,
		CacheMisses:    m.BlockCache.Misses,
	}
}
