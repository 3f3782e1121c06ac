package status

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/agentledger/agentledger/internal/operate/backup"
)

// backupNote is the note of the newest backup as it was last read, so that neither a scrape nor a report waits for a
// disk that does not answer.
type backupNote struct {
	dir     string
	last    atomic.Pointer[readNote] // nil until it was read
	reading sync.Mutex
}

// readNote is a note, nil for none, or that it can't be read.
type readNote struct {
	note   *backup.Note
	unread bool
}

// loadNote reads the note. One reader is at it at a time.
func (b *backupNote) loadNote() {
	if !b.reading.TryLock() {
		return
	}
	defer b.reading.Unlock()
	note, err := backup.ReadNote(b.dir)
	b.last.Store(&readNote{note, err != nil})
}

// readNote returns the note of now, or the last one that was read when that takes longer than ctx.
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

// register makes the metrics of the newest backup.
func (b *backupNote) register(r prometheus.Registerer) {
	gauge := func(name, help string, value func(*backup.Note) int64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			if last := b.last.Load(); last != nil && last.note != nil {
				return float64(value(last.note))
			}
			return 0
		}))
	}
	gauge("agentledger_backup_timestamp_seconds", "When agentledger backup made the newest backup; 0 for none.",
		func(n *backup.Note) int64 { return n.MadeAt.Unix() })
	gauge("agentledger_backup_verified_timestamp_seconds",
		"The same, if every ledger of that backup was re-verified and no fault was found; else 0.",
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
