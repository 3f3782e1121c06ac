// Package linelog stores lines durably in append-only files of one folder. The journal and the queue of package guard use
// it. It hides from them the files, checksums and syncs: concurrent callers share one write and one sync.
//
// Invariants:
//
//   - If Entry.Wait returned nil, the line survives a crash of the machine, and so do all lines that were appended before
//     it without an error.
//   - If Wait returned an error, this process does not read the line. It may exist after a crash.
//   - Open truncates incomplete lines at the end of the latest file if a crash can have left them there unsynced. Any
//     other damage, such as a flipped bit anywhere in a file, is an error that names the file, and nothing is truncated.
//   - After a failed sync nothing more is written, because the operating system may have dropped the data.
//   - No lock is held while reading or writing, except that reads and RemoveOldest exclude each other.
//   - Files are removed in the order in which they were created. So a line never outlives a later line that revokes it.
package linelog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentledger/agentledger/internal/durable"
)

// DefaultSegmentBytes is the default size at which the next file is started.
const DefaultSegmentBytes = 4 << 20

var errDamaged = errors.New("damaged line")

// IsDamaged reports whether an error of Open or Read is about a line whose checksum does not match.
func IsDamaged(err error) bool { return errors.Is(err, errDamaged) }

// Log is a folder of lines, opened by one process. Its methods may be called concurrently.
type Log struct {
	dir          string
	files        Files
	segmentBytes int64

	turn   chan struct{} // holds one value while a caller writes; guards active, synced and failed
	failed error         // why nothing more can be written, or nil
	active *segment      // the file that is being written, or nil before the first
	last   int           // number of the latest file

	mu       sync.Mutex
	segments []*segment // oldest first
	gathered *group     // collects appended lines

	reading sync.RWMutex // held for reading by Read, for writing to remove a file
}

// segment is one file.
type segment struct {
	number   int
	file     File
	size     int64
	live     atomic.Int64 // bytes of lines counted by Keep
	sealedAt time.Time    // time of the last write; for a file of an earlier process, its modification time
	removed  bool
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	durable.File
	Truncate(size int64) error
}

// Files is the part of a file system that a Log uses.
type Files interface {
	Create(path string) (File, error) // the name must be durable when it returns
	Open(path string) (File, error)
	Remove(path string) error // durably
}

// SystemFiles is the file system of the operating system.
type SystemFiles struct{}

// Create creates a file durably.
func (SystemFiles) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, durable.FileMode)
	if err != nil {
		return nil, err
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, nil
}

// Open opens a file for reading and writing.
func (SystemFiles) Open(path string) (File, error) {
	return os.OpenFile(path, os.O_RDWR, durable.FileMode)
}

// Remove removes a file durably.
func (SystemFiles) Remove(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// Open opens a folder, which must exist, and calls see with each line in order. text is valid until see returns. The next
// file is started when one reaches segmentBytes; if 0, DefaultSegmentBytes. It returns errors of see and of the file
// system, and errors for which IsDamaged is true.
func Open(fs Files, dir string, segmentBytes int64, see func(text []byte, at Place) error) (*Log, error) {
	if segmentBytes == 0 {
		segmentBytes = DefaultSegmentBytes
	}
	l := &Log{dir: dir, files: fs, segmentBytes: segmentBytes, turn: make(chan struct{}, 1), gathered: newGroup()}
	numbers, err := segmentNumbers(dir)
	if err != nil {
		return nil, fmt.Errorf("open lines: %w", err)
	}
	for i, number := range numbers {
		if err := l.openSegment(number, i == len(numbers)-1, see); err != nil {
			return nil, errors.Join(fmt.Errorf("open lines: %w", err), l.closeFiles())
		}
	}
	return l, nil
}

// segmentNumbers returns the numbers of the files in the folder, in ascending order.
func segmentNumbers(dir string) (numbers []int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		var number int
		_, err := fmt.Sscanf(e.Name(), segmentName, &number)
		if err == nil && e.Name() == fmt.Sprintf(segmentName, number) {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

const segmentName = "%010d.lines"

func (l *Log) segmentPath(number int) string {
	return filepath.Join(l.dir, fmt.Sprintf(segmentName, number))
}

// openSegment reads a file. Only the latest may end in lines that a crash cut off.
func (l *Log) openSegment(number int, newest bool, see func([]byte, Place) error) error {
	path := l.segmentPath(number)
	f, err := l.files.Open(path)
	if err != nil {
		return err
	}
	s := &segment{number: number, file: f, sealedAt: modifiedAt(path)}
	l.segments = append(l.segments, s)
	whole, err := readLines(f, func(text []byte, offset int64) error {
		return see(text, Place{s, offset, len(text)})
	})
	s.size = whole
	if errors.Is(err, errCutOff) && newest {
		err = f.Truncate(whole)
	}
	if err == nil && newest { // a killed process may not have synced its last lines
		err = f.Sync()
	}
	if err != nil {
		return errorAt(path, whole, err)
	}
	if newest {
		l.active, l.last = s, number
	}
	return nil
}

// errorAt adds the file and the byte of a line to an error.
func errorAt(path string, offset int64, err error) error {
	return fmt.Errorf("%s at byte %d: %w", path, offset, err)
}

func modifiedAt(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Now()
	}
	return info.ModTime()
}

var errClosed = errors.New("closed")

// Close writes the appended lines and closes the files. Later appends fail.
func (l *Log) Close() error {
	l.mu.Lock()
	g := l.gathered
	l.mu.Unlock()
	var err error
	if l.Gathered() > 0 {
		err = l.wait(g)
	}
	l.turn <- struct{}{}
	l.failed = errClosed
	<-l.turn
	return errors.Join(err, l.closeFiles())
}

func (l *Log) closeFiles() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, s := range l.segments {
		err = errors.Join(err, s.file.Close())
	}
	return err
}
