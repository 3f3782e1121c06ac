package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// stdin is the file name that means standard input.
const stdin = "-"

// open opens a file, or standard input for "-". The caller closes it.
func (s *streams) open(file string) (io.ReadCloser, error) {
	if file == stdin {
		return io.NopCloser(s.in), nil
	}
	return os.Open(file)
}

// read returns all of a file of at most max bytes.
func (s *streams) read(file string, max int64) ([]byte, error) {
	f, err := s.open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > max {
		return nil, fmt.Errorf("%s: longer than %d bytes", file, max)
	}
	return text, nil
}

// values yields the JSON values of r one after another, however they are laid
// out. What is wrong inside of a value but its syntax is left to whoever reads
// it. After an error there is nothing more.
func values(r io.Reader) iter.Seq2[[]byte, error] {
	decoder := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return func(yield func([]byte, error) bool) {
		for {
			value, err := decoder.ReadValue()
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, fmt.Errorf("read JSON: %w", err))
				return
			case !yield(value.Clone(), nil):
				return
			}
		}
	}
}

// line prints one line on standard output.
func (s *streams) line(format string, args ...any) error {
	_, err := fmt.Fprintf(s.out, format+"\n", args...)
	return err
}

// value prints v as one line of JSON on standard output.
func (s *streams) value(v any) error {
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return err
	}
	return s.line("%s", text)
}

// plain makes a text from elsewhere fit for a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
