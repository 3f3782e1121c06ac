package guard

import (
	"errors"
	"fmt"
	"github.com/agentledger/agentledger/internal/durable"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// ErrQueueFull is returned when the journal's queue holds JournalOptions.MaxQueued events,
// reserved slots included.
var ErrQueueFull = errors.New("the queue of events on disk is full")

// eventQueue keeps signed events in a folder, one file an event. File names are
// ascending numbers.
type eventQueue struct {
	dir       string
	maxEvents int

	mu       sync.Mutex
	events   int
	reserved int   // slots for results of actions under way
	last     int64 // number of the newest event
}

func (q *eventQueue) countQueued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.events
}

// countEvents reads the queue's state from its folder.
func (q *eventQueue) countEvents() error {
	names, err := q.queuedNames()
	if err != nil {
		return err
	}
	q.events = len(names)
	if len(names) > 0 {
		_, err = fmt.Sscanf(names[len(names)-1], "%d", &q.last)
	}
	return err
}

// queuedNames returns the names of the queued events, oldest first.
func (q *eventQueue) queuedNames() ([]string, error) {
	files, err := os.ReadDir(q.dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(files))
	for _, f := range files {
		if filepath.Ext(f.Name()) != durable.TemporarySuffix {
			names = append(names, f.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// reserveSlot keeps a slot of the queue for one result until release is called.
func (q *eventQueue) reserveSlot() (release func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.events+q.reserved >= q.maxEvents {
		return nil, ErrQueueFull
	}
	q.reserved++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.reserved--
	}, nil
}

// enqueueEvent stores a signed event, in a reserved slot or in a free one.
func (q *eventQueue) enqueueEvent(envelope []byte, reserved bool) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !reserved && q.events+q.reserved >= q.maxEvents {
		return ErrQueueFull
	}
	if err := durable.ReplaceFile(filepath.Join(q.dir, fmt.Sprintf("%019d", q.last+1)), envelope); err != nil {
		return fmt.Errorf("queue event: %w", err)
	}
	q.last++
	q.events++
	return nil
}

// readQueued returns a queued event, nil when it was removed.
func (q *eventQueue) readQueued(name string) ([]byte, error) {
	envelope, err := os.ReadFile(filepath.Join(q.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return envelope, err
}

func (q *eventQueue) removeQueued(name string) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := os.Remove(filepath.Join(q.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	q.events--
	return nil
}
