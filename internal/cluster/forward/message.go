package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// NodeHeader names the header of each answer that holds the id of the node that answered.
const NodeHeader = "X-Agentledger-Node"

// Headers of a hop. All begin with hopPrefix, and strangers neither send nor get any header that does.
const (
	hopPrefix  = "Agentledger-Hop-"
	hopRemote  = hopPrefix + "Remote"  // address of the client's connection; each hop has it
	hopSecure  = hopPrefix + "Secure"  // 1 for a connection with TLS
	hopEpoch   = hopPrefix + "Epoch"   // epoch of the lease by which the node was chosen
	hopRefused = hopPrefix + "Refused" // of an answer: nothing was done, because the node does not own the organization

	// hopProtocol is the protocol of a request. In an answer with hopRefused it says why nothing was done.
	hopProtocol = hopPrefix + "Protocol"
)

// HeaderBytes returns how many bytes of headers an internal listener has to take where the other listeners take bound
// bytes, which is 4 KiB or more. A hop adds its own headers, and a space to each of the client's that has none.
func HeaderBytes(bound int) int { return 2 * bound }

// isHopByHop reports whether a header is of one connection (RFC 9110, section 7.6.1), or is written by this package.
// Headers that Connection names are not: by them a client could remove the headers in which a proxy before the
// service tells its address.
func isHopByHop(name string) bool {
	switch name {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		"Content-Length":
		return true
	}
	return strings.HasPrefix(name, hopPrefix)
}

// sentBody is the body of a request while it is sent.
type sentBody struct {
	io.Reader
	passage *passage
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	if !b.beginRead() {
		return 0, errWithdrawn
	}
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.passage.endBody(err)
	}
	return n, err
}

// writeTime bounds one write to a slow client.
const writeTime = 30 * time.Second

// copyAnswer answers with the answer of a node, each part as it comes.
func (x *passage) copyAnswer(answer *http.Response, cancel context.CancelCauseFunc) error {
	h := x.w.Header()
	for name, values := range answer.Header {
		if name == "Content-Length" || !isHopByHop(name) {
			h[name] = values
		}
	}
	c := http.NewResponseController(x.w)
	_ = c.SetWriteDeadline(time.Now().Add(writeTime)) // a writer of a test has none
	x.w.WriteHeader(answer.StatusCode)
	if answer.Body == http.NoBody {
		return nil
	}
	return x.copyBody(c, answer, cancel)
}

func (x *passage) copyBody(c *http.ResponseController, answer *http.Response, cancel context.CancelCauseFunc) error {
	part := x.proxy.buffers.borrow()
	defer x.proxy.buffers.giveBack(part)
	idle := time.AfterFunc(x.proxy.timing.part, func() { cancel(errLate) })
	defer idle.Stop()
	for {
		n, err := answer.Body.Read(part[:])
		idle.Stop()
		if err := x.writePart(c, part[:n], answer.ContentLength < 0); err != nil {
			return err
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errCut, err)
		}
		idle.Reset(x.proxy.timing.part)
	}
}

// writePart writes a part of an answer to the client, which may be slow.
func (x *passage) writePart(c *http.ResponseController, part []byte, flush bool) error {
	if len(part) == 0 {
		return nil
	}
	_ = c.SetWriteDeadline(time.Now().Add(writeTime))
	if _, err := x.w.Write(part); err != nil {
		return fmt.Errorf("%w: write: %w", errCut, err)
	}
	if flush {
		_ = c.Flush()
	}
	return nil
}

// buffers are those through which answers are copied.
type buffers struct{ unused sync.Pool }

// buffer is as large as that of io.Copy.
type buffer [32 << 10]byte

func (b *buffers) borrow() *buffer {
	if kept, ok := b.unused.Get().(*buffer); ok {
		return kept
	}
	return new(buffer)
}

func (b *buffers) giveBack(unused *buffer) { b.unused.Put(unused) }
