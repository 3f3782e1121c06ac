package pebblestore

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// droppedTail is the part that Pebble drops at the end of the newest log, as a crash may have left it.
type droppedTail struct {
	log   string
	at    int64 // its first byte
	bytes int64
	whole int // chunks in it that are whole
}

// logWarning logs the dropped bytes.
func (d droppedTail) logWarning(logger *slog.Logger) {
	logger.Warn("store: the end of the newest log is not whole and is dropped: a crash can leave that, and what was acknowledged is not in it. "+
		"If neither the process nor the machine had failed, it is damage: keep a copy of the store and compare the newest checkpoints",
		"file", d.log, "byte", d.at, "bytes", d.bytes, "whole_chunks", d.whole)
}

// checkLogFiles refuses logs that have lost acknowledged appends, among the logs that Pebble would replay. Pebble
// (v2.1.7) takes most damage in the newest log for its end, because the sync offsets in a log promise less than was
// synced. They are those of the bytes of blocks that were not full when they were written (record/log_writer.go,
// flushLoop counts len(data) and not the pending blocks). By the middle of a log they promise nothing any more that a
// reader could hold against damage.
func checkLogFiles(fs vfs.FS, dir string, logs []uint64, from logPosition) (dropped []droppedTail, err error) {
	next := from.next
	exact := false // a log begins where the one before has ended; the first begins there or before
	for i, number := range logs {
		if number < from.oldest {
			continue
		}
		s, err := scanLogFile(fs, dir, number)
		if err != nil {
			return nil, err
		}
		newest := i == len(logs)-1
		if s.isDamaged() || !newest && s.tail() > 0 { // the others were closed, so synced, before the next one was made
			return nil, s.describeDamage()
		}
		if s.records > 0 {
			if next != 0 && s.first != 0 && (s.first > next || exact && s.first != next) {
				return nil, corruptValue(fmt.Sprintf("%s begins with record %d, and record %d should come next: a log before it is missing, or its end is: %s",
					logName(number), s.first, next, bringBack))
			}
			next, exact = s.next, true
		}
		if newest && s.tail() > 0 {
			dropped = append(dropped, droppedTail{log: logName(number), at: s.end, bytes: s.tail(), whole: s.behind})
		}
	}
	return dropped, nil
}

// isDamaged reports whether the first chunk that is not whole was written and synced once, so that a
// crash has not left it.
//
// A writer emits chunks one after another. Each chunk carries the sync offset of the moment when its
// emission began. The writer's flush loop runs in rounds. A round grabs all emitted chunks, writes
// them, syncs, and stores a sync offset. The stored offset never falls. So three stores of different
// offsets were made in the order of their offsets.
//
// Let c be the first whole chunk behind the damage, with the offset of store m. All chunks before c were emitted by
// then. The round that ends with store m+1 may have grabbed before that. The round that ends with store m+2 grabbed
// after store m+1, so after c began. That round has synced all chunks before c. A chunk with the offset of store m+2,
// or of a later store, shows that this sync is done. Different offsets are of different stores. So three different
// offsets, including the offset in c, prove that sync. A round that syncs and writes no partial block stores the
// previous offset again. Such rounds are not counted, so the count proves less and never too much.
//
// Two offsets are no proof, because c may have been emitted during a sync that does not cover the damage. If the
// machine then lost its power before the next sync, c can be on the disk while blocks before c are lost.
//
// An offset beyond the damage is a proof by itself, and the only proof that Pebble looks for.
//
// A chunk that is right except for one bit was written, also when damage follows.
func (s *logScan) isDamaged() bool {
	const proof = 3
	flipped := s.flipped && (s.behind > 0 || !s.more)
	return flipped || s.promises >= proof || s.behind > 0 && s.promised > uint64(s.end)
}

func (s *logScan) describeDamage() error {
	what := fmt.Sprintf("%s is damaged at byte %d", logName(s.number), s.end)
	if s.behind > 0 {
		what += fmt.Sprintf(", and acknowledged events lie behind it, up to byte %d", s.last)
	}
	return corruptValue(what + ": " + bringBack)
}

// tail returns how many bytes behind the end are of this log.
func (s *logScan) tail() int64 {
	if s.behind > 0 {
		return s.last - s.end
	}
	return s.partial
}

// seals is the number of records that sealLogTail writes. A record's sync offset is the offset of
// the last sync or of the sync before that. Which one is not known. One record may also fill a
// block, which adds no new offset. Then three offsets are left, as many as isDamaged needs.
const seals = 5

// sealLogTail ends the log of a store that is being closed with records without content, each synced before the next
// one. Their offsets prove that every chunk before them was synced (isDamaged). So no damage in the log of a stopped
// server is taken for a torn end. The caller holds the write lock, and all writes are synced.
func (e *Engine) sealLogTail() error {
	for range seals {
		c, err := e.writeBarrier()
		if err == nil {
			err = c.waitDurable()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
