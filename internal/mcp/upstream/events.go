package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// readEvents yields the data of each server-sent event of at most max bytes. It ends after an error.
func readEvents(r io.Reader, max int) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		var data []byte
		for {
			line, err := readEventLine(in, max-len(data))
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, fmt.Errorf("read events: %w", err))
				}
				return
			}
			if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
				if data != nil {
					data = append(data, '\n')
				}
				data = append(data, bytes.TrimPrefix(value, []byte(" "))...)
				continue
			}
			if len(line) > 0 || len(data) == 0 {
				continue
			}
			if !yield(data, nil) {
				return
			}
			data = nil
		}
	}
}

// readEventLine returns a line without its end, of at most max bytes and some for the field's name.
func readEventLine(in *bufio.Reader, max int) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > max+len("data: \r\n") {
			return nil, message.ErrTooLong
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return bytes.TrimRight(line, "\r\n"), nil
	}
}
