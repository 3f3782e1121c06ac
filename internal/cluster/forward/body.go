package forward

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// keptBytes is the length up to which a body is read before it is sent, so that a request that a node rejected can be
// sent to the next owner or handled here. Most events are smaller.
const keptBytes = 16 << 10

// keepBody reads a small body. After that, the client can no longer delay a node.
func (x *passage) keepBody() error {
	n := x.r.ContentLength
	if n <= 0 || n > keptBytes {
		return nil
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(x.r.Body, body); err != nil {
		x.endBody(err)
		return err
	}
	x.kept = body
	x.endBody(nil)
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // as for a request without a body
	return nil
}

// nextBody returns the body for an attempt.
func (x *passage) nextBody() io.Reader {
	if x.kept != nil {
		return bytes.NewReader(x.kept)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.body = &sentBody{x.r.Body, x}
	return x.body
}

// errWithdrawn is returned by the body of an attempt that has ended.
var errWithdrawn = errors.New("the body goes to another node")

// withdrawBody takes the body back from an attempt that has not started to read it, and reports whether it could. The
// goroutine that sends the body may continue for a while, but reads nothing.
func (x *passage) withdrawBody() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.touched {
		x.body = nil
	}
	return !x.touched
}

// beginRead reports whether an attempt may read the body.
func (b *sentBody) beginRead() bool {
	b.passage.mu.Lock()
	defer b.passage.mu.Unlock()
	if b.passage.body != b {
		return false
	}
	b.passage.touched = true
	return true
}

// restoreBody restores the request's body for the handler of this node.
func (x *passage) restoreBody() {
	if x.kept != nil {
		x.r.Body = restoredBody{bytes.NewReader(x.kept), x.r.Body}
	}
}

// restoredBody is a body that was already read.
type restoredBody struct {
	io.Reader
	io.Closer
}
