package forward

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentledger/agentledger/internal/cluster"
)

const bufferSize = 8 << 10

// connection is a connection to a node, for one request at a time. One goroutine writes and one reads.
type connection struct {
	pool   *pool
	conn   *tls.Conn
	raw    syscall.RawConn // below TLS; nil if not available
	writer *bufio.Writer
	reader *bufio.Reader
	used   time.Time // when it was released; protected by pool.mu

	epoch    cluster.Epoch // of the lease by which the node was chosen for the current request
	protocol int           // of the current request
}

func newConnection(conn *tls.Conn, p *pool) *connection {
	c := &connection{pool: p, conn: conn, writer: bufio.NewWriterSize(conn, bufferSize),
		reader: bufio.NewReaderSize(conn, bufferSize)}
	if tcp, ok := conn.NetConn().(syscall.Conn); ok {
		c.raw, _ = tcp.SyscallConn() // without it, the connection is not reused
	}
	return c
}

// abort closes the connection at once. Reads and writes in progress fail.
func (c *connection) abort() { _ = c.conn.NetConn().Close() }

// writeRequest writes a client's request as a passed request.
func (c *connection) writeRequest(r *http.Request, body io.Reader) error {
	if err := c.writeHead(r); err != nil {
		return err
	}
	var err error
	switch {
	case r.ContentLength < 0:
		err = c.writeChunks(body)
	case r.ContentLength > maxAtOnce:
		err = c.writeParts(c.writer, body, r.ContentLength)
	case r.ContentLength > 0:
		var n int64
		if n, err = c.writer.ReadFrom(io.LimitReader(body, r.ContentLength)); err == nil && n < r.ContentLength {
			err = errShortBody
		}
	}
	if err != nil {
		return err
	}
	return c.writer.Flush()
}

// writeChunks writes a body of unknown length.
func (c *connection) writeChunks(body io.Reader) error {
	chunks := httputil.NewChunkedWriter(c.writer)
	if err := c.writeParts(chunks, body, -1); err != nil {
		return err
	}
	_ = chunks.Close() // writes into the buffer, which keeps the first error
	_, err := c.writer.WriteString("\r\n")
	return err
}

// writeParts sends the head, and then each part of a body as it arrives, because the node may respond before the end. A
// negative length is unknown.
func (c *connection) writeParts(w io.Writer, body io.Reader, length int64) error {
	if length >= 0 {
		body = io.LimitReader(body, length)
	}
	part, written := make([]byte, bufferSize), int64(0)
	for {
		if err := c.writer.Flush(); err != nil {
			return err
		}
		n, err := body.Read(part)
		written += int64(n)
		if n > 0 {
			if _, err := w.Write(part[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) && written < length:
			return errShortBody
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// writeHead writes the head of a request into the buffer, which keeps the first error.
func (c *connection) writeHead(r *http.Request) error {
	target := r.RequestURI // unchanged: escaping it again may triple its length
	if target == "" {
		target = r.URL.RequestURI()
	}
	if err := c.writeLine(r.Method, " ", target, " HTTP/1.1"); err != nil {
		return err
	}
	err := c.writeLine("Host: ", r.Host)
	for name, values := range r.Header {
		for _, value := range values {
			if err == nil && !isHopByHop(name) {
				err = c.writeLine(name, ": ", value)
			}
		}
	}
	if err == nil {
		err = c.writeLine(hopRemote, ": ", r.RemoteAddr)
	}
	if err == nil && r.TLS != nil {
		err = c.writeLine(hopSecure, ": 1")
	}
	if err == nil {
		err = c.writeLine(hopEpoch, ": ", strconv.FormatUint(uint64(c.epoch), 10))
	}
	if err == nil && c.protocol > 1 { // a request without the header has protocol 1
		err = c.writeLine(hopProtocol, ": ", strconv.Itoa(c.protocol))
	}
	if err == nil {
		err = c.writeLength(r)
	}
	if err == nil {
		_, err = c.writer.WriteString("\r\n")
	}
	return err
}

// writeLength writes the header with the body's length, also for a POST without a body.
func (c *connection) writeLength(r *http.Request) error {
	switch {
	case r.ContentLength < 0:
		return c.writeLine("Transfer-Encoding: chunked")
	case r.ContentLength > 0 || r.Header["Content-Length"] != nil:
		return c.writeLine("Content-Length: ", strconv.FormatInt(r.ContentLength, 10))
	}
	return nil
}

var errShortBody = errors.New("the body is shorter than its Content-Length")

var errLineEnd = errors.New("a header line contains a line end")

// writeLine writes a line of the head. No part of a request that a server has parsed contains a line end, but otherwise
// a mistake would let a client inject headers.
func (c *connection) writeLine(parts ...string) error {
	for _, part := range parts {
		if strings.ContainsAny(part, "\r\n") {
			return errLineEnd
		}
		if _, err := c.writer.WriteString(part); err != nil {
			return err
		}
	}
	_, err := c.writer.WriteString("\r\n")
	return err
}

// readAnswer reads the head of the response to a request with the given method.
func (c *connection) readAnswer(method string) (*http.Response, error) {
	for {
		answer, err := http.ReadResponse(c.reader, &http.Request{Method: method})
		if err != nil {
			return nil, fmt.Errorf("read response: %w", err)
		}
		if answer.StatusCode >= http.StatusOK {
			return answer, nil
		}
	}
}
