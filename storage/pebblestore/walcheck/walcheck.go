// Package walcheck reads the write-ahead logs and the manifest of a Pebble store before Pebble opens it, and distinguishes
// damage from the torn end that a crash leaves.
//
// Pebble alone cannot be trusted with this. It takes most damage in the latest log, and any damage in the manifest, for
// the end of the file. It then drops the acknowledged events after the damage, or deletes as unused the tables that the
// rest of the manifest names. Package pebblestore therefore calls CheckManifest and CheckLogs first, and opens the store
// only if neither returns an error. Nothing here changes a file.
//
// # What always holds
//
//   - No state that a crash of the process or of the machine can leave is rejected, also if the disk wrote unsynced
//     sectors in any order. Damage is reported only if it is proved that the damaged bytes had been synced.
//   - The converse does not hold: damage after the last proof of a sync looks like a torn end and is dropped, with a
//     warning (DroppedTail). A store that was closed has no such bytes, because it seals its log on close.
//   - A log of any length is read in two blocks of memory.
//
// # What it relies on
//
// The formats of Pebble's files are stable, because stores of older versions must stay readable: the chunks of logs and
// manifests (package record), the tags of a manifest's records (version_edit.go) and the first sequence number, 10. The
// order of Pebble's writes is not documented and may change with any version. The version in go.mod (a test compares it)
// was read for these points:
//
//   - Manifest: a record is written and synced before the next one is written (versionSet.logAndApply). So only the last
//     record can be unfinished, and anything else that is not whole is damage. If the store file knows how many bytes of
//     the manifest were synced, everything before that must be whole.
//   - Log rotation: a log is closed, and so synced, before its successor is created. So only the latest log can have a
//     torn end. The logs' sequence numbers are contiguous, which shows a missing log and a log that was cut off.
//   - Flush loop (record.LogWriter.flushLoop): a writer emits the chunks of a log one after another, and each chunk
//     carries the sync offset that was current when its emission began. One goroutine flushes in rounds. A round grabs
//     all emitted chunks, writes them, syncs, and only then stores a new sync offset. Stored offsets never decrease.
//   - Sync offsets understate. A round adds to the offset the bytes of the current block alone (len(data)), not the
//     full blocks that it writes as well. Halfway through a log the offset is so far behind that it proves nothing
//     about the bytes before a damaged chunk, and Pebble, which relies on the offset alone, misses the damage.
//   - Recycled files: a log may reuse the file of an older log. Every chunk contains the number of its log, so bytes
//     of the older log are not mistaken for chunks of this one.
//
// # Why three sync offsets prove damage
//
// Suppose that a chunk is not whole and that whole chunks of the same log follow it. Let c be the first of these, with
// the offset stored by round m. The broken chunk was emitted before c. The round that stored offset m+1 may have grabbed
// its chunks before c was emitted. The round that stored m+2 grabbed them after m+1 was stored, so after the emission of
// c began, so it wrote and synced the broken chunk. A chunk with offset m+2 or a later one shows that this sync had
// returned. Different values were stored by different rounds. Hence three different offsets in the chunks from c on
// prove that the broken chunk was on the disk once: it is damage. A round that writes no partial block stores the
// previous value again and is not counted, so the count may prove too little and never too much.
//
// Two offsets are not enough: c may have been emitted during a sync that does not cover the broken chunk. If the power
// fails before the next sync, the disk may hold c without the blocks before it.
//
// There are two more proofs. An offset beyond the broken chunk proves the sync by itself. And a chunk that is whole except
// for one flipped bit was once written, because a crash loses whole sectors (FlippedBit).
package walcheck

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage"
)

// Remedy tells the operator how to repair a store with a missing or damaged file. It ends the errors of this package.
const Remedy = "nothing was changed; restore the file from a copy of this store, or restore the whole store"

// corrupt returns an error about a missing or damaged file. It wraps storage.ErrCorrupt.
func corrupt(what string) error { return fmt.Errorf("%s: %s: %w", what, Remedy, storage.ErrCorrupt) }

// DroppedTail is the torn end of the latest log, which Pebble drops. A crash may have left it.
type DroppedTail struct {
	log   string
	at    int64 // offset of the first byte
	bytes int64
	Whole int // whole chunks in the tail
}

// LogWarning logs the dropped bytes.
func (d DroppedTail) LogWarning(logger *slog.Logger) {
	logger.Warn("store: the torn end of the latest log is dropped: a crash can leave it, and it contains nothing that was acknowledged. "+
		"If neither the process nor the machine has crashed, it is damage: keep a copy of the store and compare the latest checkpoints",
		"file", d.log, "byte", d.at, "bytes", d.bytes, "whole_chunks", d.Whole)
}

// CheckLogs checks the logs that Pebble would replay: those among logs, which are numbers in ascending order, that from
// has not made obsolete. It returns an error that wraps storage.ErrCorrupt if a log has lost acknowledged appends or is
// missing, and otherwise the torn end of the latest log, if it has one.
func CheckLogs(fs vfs.FS, dir string, logs []uint64, from LogPosition) (dropped []DroppedTail, err error) {
	next := from.next
	exact := false // a log begins where the previous log ended; the first log may begin earlier
	for i, number := range logs {
		if number < from.oldest {
			continue
		}
		s, err := readLog(fs, dir, number)
		if err != nil {
			return nil, err
		}
		latest := i == len(logs)-1
		if s.isDamaged() || !latest && s.tail() > 0 { // older logs were closed, so synced, before the next one was created
			return nil, corrupt(s.damage())
		}
		if s.records > 0 {
			if next != 0 && s.first != 0 && (s.first > next || exact && s.first != next) {
				return nil, corrupt(fmt.Sprintf("%s begins with record %d, but record %d should be next: "+
					"the log before it or its end is missing", logName(number), s.first, next))
			}
			next, exact = s.next, true
		}
		if latest && s.tail() > 0 {
			dropped = append(dropped, DroppedTail{log: logName(number), at: s.end, bytes: s.tail(), Whole: s.behind})
		}
	}
	return dropped, nil
}

// HasRecords reports whether a log contains a record, or a whole chunk after its end.
func HasRecords(fs vfs.FS, dir string, number uint64) (bool, error) {
	s, err := readLog(fs, dir, number)
	return s.records+s.behind > 0, err
}
