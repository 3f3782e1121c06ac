package linelog

import (
	"fmt"
	"time"
)

// Place is the position of a line. The zero value is no position.
type Place struct {
	segment *segment
	offset  int64
	size    int
}

// Read returns the text of a line. ok is false if its file was removed.
func (l *Log) Read(at Place) (text []byte, ok bool, err error) {
	l.reading.RLock()
	defer l.reading.RUnlock()
	if at.segment.removed {
		return nil, false, nil
	}
	line := make([]byte, at.size+frameBytes)
	if _, err := at.segment.file.ReadAt(line, at.offset-checksumDigits-1); err != nil {
		return nil, false, fmt.Errorf("read line: %w", errorAt(l.segmentPath(at.segment.number), at.offset, err))
	}
	if text, ok = parseFrame(line); !ok {
		return nil, false, fmt.Errorf("read line: %w", errorAt(l.segmentPath(at.segment.number), at.offset, errDamaged))
	}
	return text, true, nil
}

// Keep counts the line as needed until Drop is called. It does nothing for the zero Place.
func (p Place) Keep() { p.addLive(int64(p.size)) }

// Drop undoes one call of Keep.
func (p Place) Drop() { p.addLive(-int64(p.size)) }

func (p Place) addLive(bytes int64) {
	if p.segment != nil {
		p.segment.live.Add(bytes)
	}
}

// Usage is the disk usage of a Log.
type Usage struct {
	Files      int
	Bytes      int64     // of all files
	Live       int64     // of needed lines
	OldestLive int64     // of needed lines in the oldest file
	OldestAt   time.Time // when the oldest file was last written
}

// Usage returns the disk usage of the files and of the needed lines.
func (l *Log) Usage() (u Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	u.Files = len(l.segments)
	for i, s := range l.segments {
		u.Bytes += s.size
		live := s.live.Load()
		u.Live += live
		if i == 0 {
			u.OldestLive, u.OldestAt = live, s.sealedAt
		}
	}
	return u
}

// oldest returns the oldest file, or nil if that is the one being written.
func (l *Log) oldest() *segment {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.segments) < 2 {
		return nil
	}
	return l.segments[0]
}

// ReadOldest calls see with each line of the oldest file, unless that is the one being written.
func (l *Log) ReadOldest(see func(text []byte, at Place) error) error {
	s := l.oldest()
	if s == nil {
		return nil
	}
	whole, err := readLines(s.file, func(text []byte, offset int64) error {
		return see(text, Place{s, offset, len(text)})
	})
	if err != nil {
		return fmt.Errorf("read oldest lines: %w", errorAt(l.segmentPath(s.number), whole, err))
	}
	return nil
}

// RemoveOldest removes the oldest file, unless that is the one being written. Only one caller at a time may use it and
// ReadOldest.
func (l *Log) RemoveOldest() error {
	s := l.oldest()
	if s == nil {
		return nil
	}
	if err := l.files.Remove(l.segmentPath(s.number)); err != nil {
		return fmt.Errorf("remove oldest lines: %w", err)
	}
	l.mu.Lock()
	l.segments = l.segments[1:]
	l.mu.Unlock()
	l.reading.Lock()
	defer l.reading.Unlock()
	s.removed = true
	return s.file.Close()
}
