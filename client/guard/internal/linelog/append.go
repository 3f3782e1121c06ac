package linelog

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// group is a set of lines that are written and synced together.
type group struct {
	text    []byte        // begins with space for a mark
	written chan struct{} // closed when the operating system has the text, or the write has failed
	done    chan struct{} // closed when err and base are set

	err     error
	segment *segment
	base    int64 // of text in the segment
}

func newGroup() *group {
	return &group{text: make([]byte, markBytes), written: make(chan struct{}), done: make(chan struct{})}
}

// Entry is an appended line.
type Entry struct {
	log    *Log
	group  *group
	offset int64 // of the text in the group
	size   int
}

// Append adds a line. text must be a JSON object without line ends. The line is not written until Wait is called for this
// or a later line, or until Close.
func (l *Log) Append(text []byte) Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := l.gathered
	e := Entry{l, g, int64(len(g.text)) + checksumDigits + 1, len(text)}
	g.text = appendFrame(g.text, text)
	return e
}

// Gathered returns the number of bytes that were appended and not written yet.
func (l *Log) Gathered() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.gathered.text) - markBytes
}

// Wait waits until the line is durable, and returns its place. It returns errors of the file system.
func (e Entry) Wait() (Place, error) {
	if err := e.log.wait(e.group); err != nil {
		return Place{}, fmt.Errorf("append line: %w", err)
	}
	return Place{e.group.segment, e.group.base + e.offset, e.size}, nil
}

// Written is closed once the operating system has the line, so that it survives the end of the process, or once the
// write has failed. It needs a call of Wait for this or a later line.
func (e Entry) Written() <-chan struct{} { return e.group.written }

// wait writes the group unless another caller does. If the caller has the turn and the group is not done, it is the
// gathered one, because groups are written in order.
func (l *Log) wait(g *group) error {
	select {
	case <-g.done:
		return g.err
	case l.turn <- struct{}{}:
	}
	defer func() { <-l.turn }()
	select {
	case <-g.done:
		return g.err
	default:
	}
	l.mu.Lock()
	l.gathered = newGroup()
	l.mu.Unlock()
	write := sync.OnceFunc(func() { close(g.written) })
	g.err = l.writeGroup(g, write)
	write()
	close(g.done)
	return g.err
}

// writeGroup writes and syncs a group, and calls written in between. The caller must have the turn.
func (l *Log) writeGroup(g *group, written func()) error {
	if l.failed != nil {
		return l.failed
	}
	if err := l.beginSegment(); err != nil {
		return err
	}
	s := l.active
	appendMark(g.text[:0], s.size) // everything before it is synced
	if _, err := s.file.WriteAt(g.text, s.size); err != nil {
		if cutErr := s.file.Truncate(s.size); cutErr != nil {
			l.failed = fmt.Errorf("the file could not be cut back after a failed write: %w", cutErr)
		}
		return errors.Join(err, l.failed)
	}
	written()
	if err := s.file.Sync(); err != nil {
		l.failed = fmt.Errorf("a sync failed, nothing is written until the next start: %w", err)
		return l.failed
	}
	g.segment, g.base = s, s.size
	l.mu.Lock()
	s.size += int64(len(g.text))
	s.sealedAt = time.Now()
	l.mu.Unlock()
	g.text = nil
	return nil
}

// beginSegment starts the next file if there is none or if the active one is full.
func (l *Log) beginSegment() error {
	if l.active != nil && l.active.size < l.segmentBytes {
		return nil
	}
	f, err := l.files.Create(l.segmentPath(l.last + 1))
	if err != nil {
		return fmt.Errorf("begin file: %w", err)
	}
	l.last++
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active = &segment{number: l.last, file: f}
	l.segments = append(l.segments, l.active)
	return nil
}
