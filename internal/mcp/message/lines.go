package message

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
)

// DefaultMaxBytes is the longest message in bytes that is read by default.
const DefaultMaxBytes = 16 << 20

// ErrTooLong is returned by Lines.Read for a line that is longer than the bound. The line is skipped.
var ErrTooLong = errors.New("message longer than the bound")

// Lines reads and writes messages, one a line. Read may be called by one goroutine at a time, Write by
// several.
type Lines struct {
	in  *bufio.Reader
	max int

	mu  sync.Mutex
	out io.Writer
}

// NewLines joins an input and an output. max bounds a message in bytes; 0 means DefaultMaxBytes.
func NewLines(in io.Reader, out io.Writer, max int) *Lines {
	if max == 0 {
		max = DefaultMaxBytes
	}
	return &Lines{in: bufio.NewReaderSize(in, 64<<10), out: out, max: max}
}

// Read returns the next message. After an error that wraps ErrMalformed or ErrTooLong the next one can be
// read; other errors are those of the input.
func (l *Lines) Read() (Message, error) {
	for {
		line, err := l.readLine()
		if err != nil {
			return Message{}, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return Parse(line)
		}
	}
}

// readLine reads a line of at most l.max bytes, and skips the rest of a longer one.
func (l *Lines) readLine() (line []byte, err error) {
	tooLong := false
	for {
		part, err := l.in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > l.max; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)):
			return nil, err
		case tooLong:
			return nil, fmt.Errorf("%w of %d bytes", ErrTooLong, l.max)
		}
		return line, nil
	}
}

// Write writes one message. Errors are those of the output.
func (l *Lines) Write(m Message) error {
	line, err := m.AppendLine(nil)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.out.Write(line)
	return err
}
