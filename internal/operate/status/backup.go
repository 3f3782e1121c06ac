package status

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/operate/backup"
)

// backupNote caches the note of the latest backup, so that neither a scrape nor a report waits for a disk that does
// not respond.
type backupNote struct {
	dir     string
	last    atomic.Pointer[readNote] // nil until it was read once
	reading sync.Mutex
}

// readNote is the result of reading a note. note is nil if there is none or it can't be read.
type readNote struct {
	note   *backup.Note
	unread bool
}

// loadNote reads the note, unless another goroutine is reading it.
func (b *backupNote) loadNote() {
	if !b.reading.TryLock() {
		return
	}
	defer b.reading.Unlock()
	note, err := backup.ReadNote(b.dir)
	b.last.Store(&readNote{note, err != nil})
}

// readNote reads the note and returns it. If that takes longer than ctx, it returns the last note that was read.
func (b *backupNote) readNote(ctx context.Context) (note *backup.Note, unread bool) {
	done := make(chan struct{})
	go func() {
		b.loadNote()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	last := b.last.Load()
	if last == nil {
		return nil, false
	}
	return last.note, last.unread
}

// register registers the metrics of the latest backup.
func (b *backupNote) register(r prometheus.Registerer) {
	gauge := func(name, help string, value func(*backup.Note) int64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if last := b.last.Load(); last != nil && last.note != nil {
				return float64(value(last.note))
			}
			return 0
		}))
	}
	gauge("agentledger_backup_timestamp_seconds", "Time of the latest backup by agentledger backup; 0 if there is none.",
		func(n *backup.Note) int64 { return n.MadeAt.Unix() })
	gauge("agentledger_backup_verified_timestamp_seconds",
		"Time of the latest backup if all its ledgers were re-verified without a fault; otherwise 0.",
		func(n *backup.Note) int64 {
			if n.Faults > 0 || n.Verification != backup.Whole {
				return 0
			}
			return n.MadeAt.Unix()
		})
	gauge("agentledger_backup_failed",
		"1 if the latest backup has faults, or if a verification failed and none has succeeded since.",
		func(n *backup.Note) int64 {
			if n.Faults > 0 || n.LastFailure != nil {
				return 1
			}
			return 0
		})
}
