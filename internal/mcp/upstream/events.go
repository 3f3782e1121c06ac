package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	"github.com/agentledger/agentledger/internal/mcp/message"
)

// event is a server-sent event. Its data can be empty: a server sends such a one to give its stream an id.
type event struct {
	data []byte
	id   string        // of the stream up to this event, "" for none
	wait time.Duration // before the stream is resumed, 0 for none
}

// readEvents yields each server-sent event of at most max bytes. It ends after an error.
func readEvents(r io.Reader, max int) iter.Seq2[event, error] {
	return func(yield func(event, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		var e event
		seen := false
		for {
			line, err := readEventLine(in, max-len(e.data))
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(event{}, fmt.Errorf("read events: %w", err))
				}
				return
			}
			if len(line) == 0 {
				if seen && !yield(e, nil) {
					return
				}
				e, seen = event{}, false
				continue
			}
			name, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(name) {
			case "data":
				if e.data != nil {
					e.data = append(e.data, '\n')
				}
				e.data = append(e.data, value...)
			case "id":
				e.id = string(value)
			case "retry":
				if n, err := strconv.ParseUint(string(value), 10, 31); err == nil {
					e.wait = time.Duration(n) * time.Millisecond
				}
			default:
				continue
			}
			seen = true
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
