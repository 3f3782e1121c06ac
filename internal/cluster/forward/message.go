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

// NodeHeader is the header of each response with the ID of the node that handled the request.
const NodeHeader = "X-Agentledger-Node"

// Headers of a hop. All begin with hopPrefix. Other clients can neither send nor receive a header with this prefix.
const (
	hopPrefix  = "Agentledger-Hop-"
	hopRemote  = hopPrefix + "Remote"  // address of the client's connection; present in each passed request
	hopSecure  = hopPrefix + "Secure"  // 1 if the client's connection uses TLS
	hopEpoch   = hopPrefix + "Epoch"   // epoch of the lease by which the node was chosen
	hopRefused = hopPrefix + "Refused" // in a response: nothing was done, because the node does not own the organization

	// hopProtocol is the protocol of a request. In a response with hopRefused, it contains the reason why nothing was
	// done.
	hopProtocol = hopPrefix + "Protocol"
)

// HeaderBytes returns the header limit of an internal listener, given the limit of the other listeners, which must be
// at least 4 KiB. A hop adds its own headers, and a space to each of the client's headers that has none.
func HeaderBytes(bound int) int { return 2 * bound }

// isHopByHop reports whether a header applies to a single connection (RFC 9110, section 7.6.1) or is written by this
// package. Headers named by Connection do not count: a client could use them to remove the headers in which a proxy in
// front of the service passes the client's address.
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

// copyAnswer responds with the response of a node, each part as it arrives. A response that fits the buffer is read before the client
// gets any of it, so that the request can be repeated if the node fails meanwhile.
func (x *passage) copyAnswer(answer *http.Response, cancel context.CancelCauseFunc) error {
	part := x.proxy.buffers.borrow()
	defer x.proxy.buffers.giveBack(part)
	idle := time.AfterFunc(x.proxy.timing.part, func() { cancel(errLate) })
	defer idle.Stop()
	isShort := answer.Body != http.NoBody && answer.ContentLength >= 0 && answer.ContentLength <= int64(len(part))
	short := part[:0]
	if isShort {
		short = part[:answer.ContentLength]
		if _, err := io.ReadFull(answer.Body, short); err != nil {
			return fmt.Errorf("read response: %w", err)
		}
		idle.Stop()
	}
	h := x.w.Header()
	for name, values := range answer.Header {
		if name == "Content-Length" || !isHopByHop(name) {
			h[name] = values
		}
	}
	c := http.NewResponseController(x.w)
	_ = c.SetWriteDeadline(time.Now().Add(writeTime)) // not supported by writers of tests
	x.w.WriteHeader(answer.StatusCode)
	if isShort || answer.Body == http.NoBody {
		return x.writePart(c, short, false)
	}
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

// writePart writes a part of a response to the client, which may be slow.
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

// buffers pools the buffers through which responses are copied.
type buffers struct{ unused sync.Pool }

// buffer has the same size as the buffer of io.Copy.
type buffer [32 << 10]byte

func (b *buffers) borrow() *buffer {
	if kept, ok := b.unused.Get().(*buffer); ok {
		return kept
	}
	return new(buffer)
}

func (b *buffers) giveBack(unused *buffer) { b.unused.Put(unused) }
