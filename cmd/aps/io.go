package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/agentledger/agentledger/cmd/aps/people"
	"github.com/agentledger/agentledger/internal/secret"
)

// stdin is the file name that means standard input.
const stdin = "-"

// openInput opens a file, or standard input for "-". The caller closes it.
func (s *streams) openInput(file string) (io.ReadCloser, error) {
	if file == stdin {
		return io.NopCloser(s.in), nil
	}
	return os.Open(file)
}

// readSettings is readInput for a file that determines what is trusted. It rejects a file that every user can change.
func (s *streams) readSettings(file string, max int64) ([]byte, error) {
	if file == stdin {
		return s.readInput(file, max)
	}
	f, err := secret.OpenSettings(file)
	if err != nil {
		return nil, err
	}
	return readAtMost(f, file, max)
}

// readInput returns all of a file of at most max bytes.
func (s *streams) readInput(file string, max int64) ([]byte, error) {
	f, err := s.openInput(file)
	if err != nil {
		return nil, err
	}
	return readAtMost(f, file, max)
}

// readAtMost returns all of f, of at most max bytes, and closes it.
func readAtMost(f io.ReadCloser, file string, max int64) ([]byte, error) {
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(text)) > max {
		return nil, fmt.Errorf("%s: longer than %d bytes", file, max)
	}
	return text, err
}

// readValues yields the JSON values of r, which may be separated by white space. It checks only their syntax. It stops
// after an error.
func readValues(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for group, err := range readGroups(r, 1) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(group[0], nil) {
				return
			}
		}
	}
}

// inputBuffer is the size in bytes of the read-ahead buffer.
const inputBuffer = 64 << 10

// readGroups yields the values in groups of limited size. A group also ends if no byte of the next value has arrived, so
// that a value from a slow pipe does not wait for the next one.
func readGroups(r io.Reader, most int) iter.Seq2[[][]byte, error] {
	ahead := bufio.NewReaderSize(r, inputBuffer)
	decoder := jsontext.NewDecoder(ahead, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	more := func() bool {
		rest, _ := ahead.Peek(ahead.Buffered()) // no error, because these bytes are buffered
		return len(bytes.TrimSpace(decoder.UnreadBuffer())) > 0 || len(bytes.TrimSpace(rest)) > 0
	}
	return func(yield func([][]byte, error) bool) {
		for {
			group, err := readGroup(decoder, most, more)
			if len(group) > 0 && !yield(group, nil) || errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("read JSON: %w", err))
				return
			}
		}
	}
}

func readGroup(decoder *jsontext.Decoder, most int, more func() bool) (group [][]byte, err error) {
	for len(group) == 0 || len(group) < most && more() {
		value, err := decoder.ReadValue()
		if err != nil {
			return group, err
		}
		group = append(group, value.Clone())
	}
	return group, nil
}

// printLine prints one line on standard output.
func (s *streams) printLine(format string, args ...any) error {
	return (&people.Terminal{Out: s.out}).PrintLine(format, args...)
}

// printJSON prints v as one line of JSON on standard output.
func (s *streams) printJSON(v any) error {
	return (&people.Terminal{Out: s.out}).PrintJSON(v)
}
