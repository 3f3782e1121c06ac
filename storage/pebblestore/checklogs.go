package pebblestore

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/agentledger/agentledger/storage/pebblestore/walcheck"
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
		s, err := walcheck.ReadFile(fs, dir, number)
		if err != nil {
			return nil, err
		}
		newest := i == len(logs)-1
		if s.IsDamaged() || !newest && s.Tail() > 0 { // the others were closed, so synced, before the next one was made
			return nil, corruptValue(s.Damage() + ": " + bringBack)
		}
		if s.Records > 0 {
			if next != 0 && s.First != 0 && (s.First > next || exact && s.First != next) {
				return nil, corruptValue(fmt.Sprintf("%s begins with record %d, and record %d should come next: a log before it is missing, or its end is: %s",
					walcheck.Name(number), s.First, next, bringBack))
			}
			next, exact = s.Next, true
		}
		if newest && s.Tail() > 0 {
			dropped = append(dropped,
				droppedTail{log: walcheck.Name(number), at: s.End, bytes: s.Tail(), whole: s.Behind})
		}
	}
	return dropped, nil
}

// seals is the number of records that sealLogTail writes. A record's sync offset is the offset of
// the last sync or of the sync before that. Which one is not known. One record may also fill a
// block, which adds no new offset. Then three offsets are left, as many as Scan.IsDamaged needs.
const seals = 5

// sealLogTail ends the log of a store that is being closed with records without content, each synced before the next
// one. Their offsets prove that every chunk before them was synced (Scan.IsDamaged). So no damage in the log of a
// stopped server is taken for a torn end. The caller holds the write lock, and all writes are synced.
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
