// Package markfile keeps in a file how far an fsck came.
//
// Invariants:
//
//   - The file is replaced as a whole, so that a run that is killed leaves the marks of some seconds ago at worst.
//   - A file that can't be read is an error, and never a file without marks.
package markfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/durable"
	"github.com/agentledger/agentledger/log/audit"
)

// every is the time between two writes of the file.
const every = 5 * time.Second

// File is the marks of a run. Its methods may be called concurrently.
type File struct {
	path string

	mu      sync.Mutex
	marks   map[id.Origin]audit.Mark
	written time.Time
}

// Open reads the marks of an earlier run. There are none without a file.
func Open(path string) (*File, error) {
	f := &File{path: path, marks: make(map[id.Origin]audit.Mark)}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &f.marks, json.RejectUnknownMembers(true))
	}
	if err != nil {
		return nil, fmt.Errorf("read progress in %s: %w", path, err)
	}
	return f, nil
}

// Find implements audit.Progress.
func (f *File) Find(o id.Origin) (audit.Mark, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.marks[o]
	return m, ok
}

// Note implements audit.Progress. It writes the file from time to time.
func (f *File) Note(o id.Origin, m audit.Mark) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marks[o] = m
	if time.Since(f.written) < every {
		return nil
	}
	return f.write()
}

// Keep writes the file for a later run.
func (f *File) Keep() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write()
}

// Remove removes the file of a run that came to its end.
func (f *File) Remove() error {
	err := os.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write MUST be called with the lock held.
func (f *File) write() error {
	text, err := json.Marshal(f.marks, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	f.written = time.Now()
	return durable.ReplaceFile(f.path, text)
}
