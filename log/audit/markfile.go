package audit

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
)

// markInterval is the minimum time between two writes of the file.
const markInterval = 5 * time.Second

// MarkFile stores the progress of an fsck in a file, so that a run that was interrupted can be resumed. Its methods may
// be called concurrently.
//
// The file is always replaced as a whole: a run that is killed leaves marks that are at most some seconds old. A file
// that cannot be read is an error; it is never treated as a run without marks.
type MarkFile struct {
	path string

	mu      sync.Mutex
	marks   map[id.Origin]Mark
	written time.Time
}

// OpenMarkFile reads the marks of an earlier run. If path does not exist, there are none.
func OpenMarkFile(path string) (*MarkFile, error) {
	f := &MarkFile{path: path, marks: make(map[id.Origin]Mark)}
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

// Find implements Progress.
func (f *MarkFile) Find(o id.Origin) (Mark, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.marks[o]
	return m, ok
}

// Note implements Progress. It writes the file at most once per markInterval.
func (f *MarkFile) Note(o id.Origin, m Mark) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.marks[o] = m
	if time.Since(f.written) < markInterval {
		return nil
	}
	return f.write()
}

// Keep writes the file for a later run.
func (f *MarkFile) Keep() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.write()
}

// Remove removes the file after a complete run.
func (f *MarkFile) Remove() error {
	err := os.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// write writes the file. The caller must hold f.mu.
func (f *MarkFile) write() error {
	text, err := json.Marshal(f.marks, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	f.written = time.Now()
	return durable.ReplaceFile(f.path, text)
}
