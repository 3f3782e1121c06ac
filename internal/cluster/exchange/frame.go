package exchange

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// frameHeader is the length of the header of each note, which contains the note's length, big-endian.
const frameHeader = 4

func appendFrame(body, note []byte) []byte {
	body = binary.BigEndian.AppendUint32(body, uint32(len(note)))
	return append(body, note...)
}

// readFrames calls add with each note until the end. Each note has its own memory. A note that is empty or longer than
// maxNote is an error, and so is an end inside of a frame.
func readFrames(r io.Reader, add func(note []byte) error) error {
	in := bufio.NewReader(r)
	for {
		var header [frameHeader]byte
		if _, err := io.ReadFull(in, header[:]); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a note: %w", err)
		}
		n := binary.BigEndian.Uint32(header[:])
		if n == 0 || n > maxNote {
			return fmt.Errorf("read a note: %d bytes are not allowed", n)
		}
		note := make([]byte, n)
		if _, err := io.ReadFull(in, note); err != nil {
			return fmt.Errorf("read a note: %w", noEOF(err))
		}
		if err := add(note); err != nil {
			return err
		}
	}
}

// noEOF returns io.ErrUnexpectedEOF instead of io.EOF.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// errStalled is returned if a node sent nothing for a while.
var errStalled = fmt.Errorf("the node stalled: %w", context.DeadlineExceeded)

// patience bounds each wait for the next bytes from a node, but not the time in which they are stored.
type patience struct {
	io.Reader
	limit time.Duration
	timer *time.Timer // ends the call
}

// Read implements io.Reader.
func (p *patience) Read(b []byte) (int, error) {
	p.timer.Reset(p.limit)
	defer p.timer.Stop()
	return p.Reader.Read(b)
}

// keeper puts notes into a journal, many per call.
type keeper struct {
	journal Journal
	notes   [][]byte
	bytes   int
}

func (k *keeper) addNote(note []byte) error {
	k.notes = append(k.notes, note)
	if k.bytes += len(note); k.bytes >= maxMessage {
		return k.flush()
	}
	return nil
}

func (k *keeper) flush() error {
	if len(k.notes) == 0 {
		return nil
	}
	err := k.journal.Put(k.notes...)
	k.notes, k.bytes = nil, 0
	if err != nil {
		return fmt.Errorf("store notes: %w", err)
	}
	return nil
}
