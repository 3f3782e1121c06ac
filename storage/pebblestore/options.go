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
	// Dir is the directory of the store; it is made with mode 0700.
	Dir string

	// CacheBytes bounds the cache of decompressed blocks. 0 means 256 MiB. Memtables have 128 MiB in addition, unless
	// the store is read-only, and names of events at most 43 MiB.
	CacheBytes int64

	// MaxTables bounds the tables that are kept open, each a file descriptor; at least 64 are. 0 means 1000.
	MaxTables int

	// Logger gets the messages of Pebble: errors as errors, the rest at debug level. nil discards it.
	Logger *slog.Logger

	// FS is the file system that holds Dir. nil means the operating system's.
	FS vfs.FS

	// ReadOnly opens an existing store and changes nothing in Dir: the traces of a crash are read
	// and not repaired, no format is raised, no file is made. It works where the file system takes
	// no writes. There, and where Dir has no lock file, the store is opened without the lock.
	ReadOnly bool

	// OnBroken is called once, when the engine breaks, from the goroutine that found it. It must not call the engine;
	// ending the process is its task. If it returns, or is nil, the engine goes on answering storage.ErrBroken, save
	// that a fault in one of Pebble's background jobs panics: nothing else keeps them from building on a manifest
	// that is half written.
	OnBroken func(error)

	uncompressed bool // so that a test finds texts in the tables
}

const (
	defaultCacheBytes = 256 << 20
	defaultTables     = 1000
	otherFiles        = 10 // that Pebble subtracts from MaxOpenFiles for files that are not tables

	// Large memtables mean few and large flushes. A queue of four lets bursts run on while one
	// memtable is written out.
	memTableBytes   = 64 << 20
	memTablesQueued = 4

	// Memtables that there are mostly: the one that is written, and the one that is flushed or kept for the next
	// one. Pebble takes their bytes from the cache of blocks, and those of more memtables in a burst.
	memTablesUsual = 2

	// Flushes that are merged into the level below together. A merge rewrites tables at the ends of its families
	// of keys and all tables of names, about 40 MB. With two flushes of 20 MB that is most of the work.
	l0Runs = 8

	// Events are about 1 KiB, so that a block holds some twenty events: enough
	// for compression to see repetition, small enough for single reads.
	blockBytes      = 32 << 10
	indexBlockBytes = 256 << 10

	// Bits of Bloom filter for each key, a false positive rate of 1 %. Every
	// ingest asks for an event id that is not there.
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
	o.Logger = telemetry.WithoutRepeats(o.Logger) // Pebble tries a failed job again at once
	if o.FS == nil {
		o.FS = privateFS{FS: vfs.Default}
	}
	o.Dir = o.FS.PathJoin(o.Dir) // in the form that paths of its files have
	return o
}

// cacheSize returns the size of Pebble's cache in bytes, which includes the memtables. A read-only store has a memtable
// only if its log contains events that are in no table yet.
func (o Options) cacheSize() int64 {
	if o.ReadOnly {
		return o.CacheBytes
	}
	return o.CacheBytes + memTablesUsual*memTableBytes
}

// pebble returns the options of the underlying store. e learns of its failures.
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
	// Upper levels are compressed fast and the lowest one, which holds nearly everything, by zstd at its lowest
	// level: an event of 1 KiB then takes 640 bytes instead of 840, for 5 µs more of background work.
	compression := pebble.DBCompressionBalanced
	if o.uncompressed {
		compression = pebble.DBCompressionNone
	}
	po.ApplyCompressionSettings(func() pebble.DBCompressionSettings { return compression })
	return po
}
