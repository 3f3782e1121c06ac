package forward

import (
	"bytes"
	"io"
	"net/http"
	"time"
)

// keptBytes is the largest body that is read before it is sent, so that a request that a node refused can go to the
// next owner, or be handled here. Most events are smaller.
const keptBytes = 16 << 10

// keepBody reads a small body. From then on its arrival delays no node.
func (x *passage) keepBody() error {
	n := x.r.ContentLength
	if n <= 0 || n > keptBytes {
		return nil
	}
	kept := make([]byte, n)
	if _, err := io.ReadFull(x.r.Body, kept); err != nil {
		x.endBody(err)
		return err
	}
	x.kept = kept
	x.endBody(nil)
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // as for a request without a body
	return nil
}

// nextBody returns the body for an attempt.
func (x *passage) nextBody() io.Reader {
	if x.kept != nil {
		return bytes.NewReader(x.kept)
	}
	return &sentBody{x.r.Body, x}
}

// restoreBody gives the request its body back, for the handler of this node.
func (x *passage) restoreBody() {
	if x.kept != nil {
		x.r.Body = restoredBody{bytes.NewReader(x.kept), x.r.Body}
	}
}

// restoredBody is a body that was read before.
type restoredBody struct {
	io.Reader
	io.Closer
}
