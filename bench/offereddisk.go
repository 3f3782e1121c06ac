package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// walBytes is about what one event of entrySize adds to the write-ahead log.
const walBytes = 2200

// offerDisk is the load of offer on a file, below everything: what came while the
// file was being synced is written and synced together. It is what the disk alone
// makes a sender wait for.
func (s *suite) offerDisk() error {
	dir, remove, err := s.folder()
	if err != nil {
		return err
	}
	defer remove()
	f, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return err
	}
	defer f.Close()
	d := &disk{file: f, record: []byte(text(rand.New(rand.NewPCG(5, 5)), walBytes))}
	d.turn.L = &d.mu
	var mu sync.Mutex
	var took latencies
	const connections = 256
	l := s.offeredLimit()
	_, err = openLoop(offeredRate, connections, l, func(int) (timedStep, error) {
		return func(n int, since time.Time) error {
			if err := d.add(); err != nil {
				return err
			}
			if n >= int(l.Warm.Seconds()*offeredRate) {
				mu.Lock()
				took = append(took, time.Since(since))
				mu.Unlock()
			}
			return nil
		}, nil
	})
	if err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	s.emit("offered/disk", len(took), micros(took, 0.5, "ack-p50-µs"), micros(took, 0.99, "ack-p99-µs"))
	return nil
}

// disk is a file that senders append to, one of them syncing for all that wait.
type disk struct {
	file   *os.File
	record []byte

	mu      sync.Mutex
	turn    sync.Cond
	written int64 // records
	synced  int64 // of written
	syncing bool
	err     error
}

// add returns when one more record is durable.
func (d *disk) add() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.file.Write(d.record); err != nil {
		return err
	}
	d.written++
	mine := d.written
	for d.synced < mine && d.err == nil {
		if d.syncing {
			d.turn.Wait()
			continue
		}
		d.sync()
	}
	return d.err
}

func (d *disk) sync() {
	d.syncing = true
	written := d.written
	d.mu.Unlock()
	err := syscall.Fdatasync(int(d.file.Fd()))
	d.mu.Lock()
	d.syncing, d.synced, d.err = false, written, err
	d.turn.Broadcast()
}
