package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// conn is a persistent HTTP/1.1 connection for load. It costs next to nothing: it sends bytes that were prepared
// beforehand, and allocates nothing for a response. It must be used by one goroutine at a time.
type conn struct {
	conn net.Conn
	r    *bufio.Reader
	body []byte
}

// exchangeTimeout bounds one request with its response.
const exchangeTimeout = 60 * time.Second

// dialConn connects to the host of a URL.
func dialConn(url string) (*conn, error) {
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return &conn{conn: c, r: bufio.NewReaderSize(c, 16<<10)}, nil
}

// Close closes the connection.
func (c *conn) Close() error { return c.conn.Close() }

// Do sends a request and returns the response. body is valid until the next call.
func (c *conn) Do(request []byte) (status int, body []byte, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return 0, nil, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return 0, nil, fmt.Errorf("send: %w", err)
	}
	if status, err = c.read(); err != nil {
		return 0, nil, fmt.Errorf("read answer: %w", err)
	}
	return status, c.body, nil
}

// Expect is like Do, but returns an error that shows the response if it has another status.
func (c *conn) Expect(want int, request []byte) (body []byte, err error) {
	status, body, err := c.Do(request)
	if err == nil && status != want {
		err = fmt.Errorf("status %d, want %d: %.300s", status, want, body)
	}
	return body, err
}

var errAnswer = errors.New("malformed answer")

func (c *conn) read() (status int, err error) {
	line, err := c.line()
	if err != nil {
		return 0, err
	}
	if len(line) < 12 || string(line[:9]) != "HTTP/1.1 " {
		return 0, errAnswer
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, errAnswer
	}
	length, err := c.header()
	if err != nil {
		return 0, err
	}
	c.body = c.body[:0]
	if length == chunked {
		return status, c.chunks()
	}
	return status, c.take(length)
}

// chunked is the length of a body in chunks.
const chunked = -1

// header reads up to the empty line and returns the length of the body.
func (c *conn) header() (length int, err error) {
	for {
		line, err := c.line()
		if err != nil || len(line) == 0 {
			return length, err
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return 0, errAnswer
			}
		}
		if string(line) == "Transfer-Encoding: chunked" {
			length = chunked
		}
	}
}

// line returns the next line without its line end.
func (c *conn) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// take appends the next n bytes to the body.
func (c *conn) take(n int) error {
	have := len(c.body)
	c.body = slices.Grow(c.body, n)[:have+n]
	_, err := io.ReadFull(c.r, c.body[have:])
	return err
}

func (c *conn) chunks() error {
	for {
		line, err := c.line()
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil {
			return errAnswer
		}
		if err := c.take(int(n)); err != nil {
			return err
		}
		if _, err := c.line(); err != nil || n == 0 {
			return err
		}
	}
}
