package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/agentledger/agentledger/fault"
	"github.com/agentledger/agentledger/internal/durable"
)

const (
	maxSnapshots = 4              // because each keeps tables that the store no longer needs
	snapshotLife = 24 * time.Hour // of a snapshot that an unknown reader did not remove
)

// Snapshots makes snapshots of a serving store for other processes on this machine, which read and remove them. Its
// methods may be called concurrently.
type Snapshots struct {
	Store any    // the engine
	Dir   string // created if missing
	Clock func() time.Time

	mu sync.Mutex
}

// snapshotter is an engine that can make a snapshot of itself.
type snapshotter interface {
	Snapshot(ctx context.Context, dir string) error
}

// Make makes a snapshot and returns its name in the directory of snapshots. It returns fault.Conflict if there are
// too many, or if the store cannot make one. It first removes the snapshots whose reader has ended, and those of
// unknown readers after a day. A snapshot in use is kept, whatever its age.
func (s *Snapshots) Make(ctx context.Context) (name string, err error) {
	store, ok := s.Store.(snapshotter)
	if !ok {
		return "", fault.New(fault.Conflict, "The ledgers are in a database: make the backup there")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Clock().UTC()
	if err := s.makeRoom(now); err != nil {
		return "", err
	}
	name = now.Format(nameLayout)
	err = store.Snapshot(ctx, filepath.Join(s.Dir, name))
	if errors.Is(err, fs.ErrExist) {
		err = fault.Wrap(fault.Conflict, "Another snapshot was made in the same millisecond: try again", err)
	}
	return name, err
}

// makeRoom removes abandoned snapshots and returns an error if there are still too many.
func (s *Snapshots) makeRoom(now time.Time) error {
	if err := os.MkdirAll(s.Dir, durable.DirMode); err != nil {
		return fmt.Errorf("make snapshot: %w", err)
	}
	names, err := list(s.Dir)
	if err != nil {
		return fmt.Errorf("make snapshot: %w", err)
	}
	count := 0
	for _, name := range names {
		if made, _ := time.Parse(nameLayout, name); !isAbandoned(filepath.Join(s.Dir, name), now.Sub(made)) {
			count++
			continue
		}
		if err := removeSnapshot(filepath.Join(s.Dir, name)); err != nil {
			return fmt.Errorf("remove an old snapshot: %w", err)
		}
	}
	if count >= maxSnapshots {
		return fault.New(fault.Conflict, fmt.Sprintf("There are %d snapshots: try again after a backup, fsck or "+
			"export ended, or two minutes after one was killed, or remove unused ones from DATA/snapshots", count))
	}
	return nil
}

// Remove removes a snapshot. It returns fault.NotFound if there is no snapshot with that name.
func (s *Snapshots) Remove(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(s.Dir, name)
	if _, malformed := time.Parse(nameLayout, name); malformed != nil {
		return fault.New(fault.NotFound, "Unknown snapshot")
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "Unknown snapshot")
	}
	if err := removeSnapshot(path); err != nil {
		return fmt.Errorf("remove snapshot: %w", err)
	}
	return nil
}
