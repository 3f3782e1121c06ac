package pebblestore

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/internal/telemetry"
)

// Options are the settings of a store. Dir is required.
type Options struct {
	// Dir is the directory of the store. It is created with mode 0700.
	Dir string

	// CacheBytes bounds the cache of decompressed blocks. If zero, 256 MiB. Memtables use another 128 MiB unless the
	// store is read-only, and event names at most 43 MiB.
	CacheBytes int64

	// MaxTables bounds the number of open tables, each of which takes a file descriptor. If zero, 1000; at least 64 are
	// used.
	MaxTables int

	// Logger receives Pebble's errors as errors and its other messages at debug level. If nil, they are discarded.
	Logger *slog.Logger

	// FS is the file system that contains Dir. If nil, it is the operating system's.
	FS vfs.FS

	// ReadOnly opens an existing store and changes nothing in Dir: it reads but does not repair what a crash left,
	// raises no format and creates no file. It works on a read-only file system. There, and if Dir has no lock file,
	// the store is opened without the lock.
	ReadOnly bool

	// OnBroken is called once when the engine breaks, by the goroutine that detected it. It should end the process and
	// must not call the engine. If it returns or is nil, the engine keeps returning storage.ErrBroken, except that a
	// failure in one of Pebble's background jobs panics: otherwise they would build on a half-written manifest.
	OnBroken func(error)

	uncompressed bool // lets a test search for texts in the tables
}

const (
	defaultCacheBytes = 256 << 20
	defaultTables     = 1000
	otherFiles        = 10 // subtracted by Pebble from MaxOpenFiles for files that are not tables

	// Large memtables mean few and large flushes. A queue of four lets a burst continue while one memtable is flushed.
	memTableBytes   = 64 << 20
	memTablesQueued = 4

	// The usual number of memtables: the current one, and one that is being flushed or kept for reuse. Pebble takes
	// their memory, and that of more memtables during a burst, from the block cache.
	memTablesUsual = 2

	// Number of flushes that are merged into the level below at once. A merge rewrites the tables at the boundaries of
	// key families and all tables with names, about 40 MB. With only two flushes of 20 MB, that would be most of the
	// work.
	l0Runs = 8

	// An event is about 1 KiB, so a block contains some thirty events: enough for compression to find repetition, and
	// few enough for single reads.
	blockBytes      = 32 << 10
	indexBlockBytes = 256 << 10

	// Bits of Bloom filter per key, for a false positive rate of 1 %. Every ingest looks up an event ID that does not
	// exist.
	filterBits = 10
)

func (o Options) withDefaults() Options {
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.MaxTables == 0 {
		o.MaxTables = defaultTables
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = telemetry.WithoutRepeats(o.Logger) // Pebble retries a failed job at once
	if o.FS == nil {
		o.FS = privateFS{FS: vfs.Default}
	}
	o.Dir = o.FS.PathJoin(o.Dir) // normalized, as in the paths of its files
	return o
}

// cacheSize returns the size of Pebble's cache in bytes, which includes the memtables. A read-only store has a memtable
// only if its log contains events that are not in tables yet.
func (o Options) cacheSize() int64 {
	if o.ReadOnly {
		return o.CacheBytes
	}
	return o.CacheBytes + memTablesUsual*memTableBytes
}

// pebble returns the options of the underlying store, which reports its failures to e.
func (o Options) pebble(e *Engine) *pebble.Options {
	logger := &logger{engine: e, slog: o.Logger}
	po := &pebble.Options{
		FS:                          directoryFS{o.FS, e},
		Lock:                        e.lock,
		ReadOnly:                    o.ReadOnly,
		FormatMajorVersion:          pebble.FormatNewest,
		CacheSize:                   o.cacheSize(),
		MaxOpenFiles:                o.MaxTables + otherFiles,
		MemTableSize:                memTableBytes,
		MemTableStopWritesThreshold: memTablesQueued,
		L0CompactionThreshold:       l0Runs,
		L0CompactionFileThreshold:   500,
		L0StopWritesThreshold:       100,
		LBaseMaxBytes:               256 << 20,
		FlushSplitBytes:             8 << 20,
		BytesPerSync:                1 << 20,
		WALBytesPerSync:             0, // every commit syncs the log already
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      logger,
		EventListener:               logger.events(),
	}
	po.TargetFileSizes[0] = 8 << 20
	for i := range po.Levels {
		po.Levels[i].BlockSize = blockBytes
		po.Levels[i].IndexBlockSize = indexBlockBytes
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(filterBits)
	}
	// Upper levels use fast compression. The lowest level, which contains nearly everything, uses zstd at its lowest
	// setting: it stores an event of 1 KiB in 640 bytes instead of 840, for 5 µs more of background work.
	compression := pebble.DBCompressionBalanced
	if o.uncompressed {
		compression = pebble.DBCompressionNone
	}
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return compression })
	return po
}
