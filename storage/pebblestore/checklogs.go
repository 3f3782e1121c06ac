package pebblestore

import (
	"fmt"
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// droppedTail is the part that Pebble drops at the end of the newest log, as a crash may have
// left it.
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

// checkLogFiles refuses logs that have lost acknowledged appends, of those that Pebble
// would replay. Pebble (v2.1.7) takes most damage in the newest log for its end:
// the sync offsets in a log are those of the bytes of blocks that were not full when
// they were written (record/log_writer.go, flushLoop counts len(data) and not the
// pending blocks), so they promise less than was synced, and by the middle of a
// log nothing any more that a reader could hold against damage.
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

// isDamaged reports whether the first chunk that is not whole was written and synced
// once, so that a crash has not left it.
//
// A writer emits chunks one after another, each with the sync offset of the moment
// when its emission began. Its flush loop goes round: it grabs all that was emitted,
// writes it, syncs, and stores a sync offset, which never falls. So of three stores
// of different offsets, the second is behind the first, and the third behind that.
//
// Say c is the first whole chunk behind the damage, and carries the offset of store m.
// All before c was emitted by then. The round that ends with store m+1 may have
// grabbed before; the one that ends with store m+2 grabbed after store m+1, so after
// c began, and has synced all before c. A chunk that carries an offset of store m+2,
// or later, says that this sync is done. Offsets of different size are of different
// stores, so that three of them, the one in c among them, prove it. Rounds that sync
// and write no partial block store the offset of before once more: they are not
// counted, which proves less and never too much.
//
// With two offsets it is not proved: c may have been emitted while a sync was under
// way that does not cover the damage, and be there, as the machine lost its power
// before the next sync, and with it blocks before c.
//
// An offset beyond the damage says so by itself. This is the one proof that Pebble
// looks for.
//
// A chunk that is right but for one bit was written, also when damage follows.
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

// seals is how many records sealLog writes. Of a record's sync offset it is only
// known that it is that of the sync before the last one, or of the last one; and one
// of them may fill a block, which adds no new offset. Then three are left.
const seals = 5

// sealLogTail ends the log of a store that is being closed with records that say
// nothing, each synced before the next one. Their offsets prove that all before
// them was synced (see damaged), so that no damage in the log of a server that was
// stopped is taken for a torn end. The caller holds the write lock, and all is synced.
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
