package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	hopSafe    = hopPrefix + "Repeat-" // before the name of a header by which http.Transport would send a request twice
	hopRefused = hopPrefix + "Refused" // of an answer: nothing was done, because the node does not own the organization
)

// repeating are the headers by which http.Transport takes a request with effects for one that it may send twice.
func repeating() [2]string { return [...]string{"Idempotency-Key", "X-Idempotency-Key"} }

// dropHopByHop removes the headers of one connection (RFC 9110, section 7.6.1). Those that Connection names are kept:
// by them a client could remove the headers in which a proxy before the service tells its address.
func dropHopByHop(h http.Header) {
	for _, name := range [...]string{"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Expect"} {
		delete(h, name)
	}
}

// outgoing returns the request for a node.
func (x *passage) outgoing(ctx context.Context, base string) (*http.Request, error) {
	node, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("pass the request: URL of the node: %w", err)
	}
	r := x.r
	out := &http.Request{Method: r.Method, Host: r.Host, Header: hopHeader(r), ContentLength: r.ContentLength,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody,
		URL: &url.URL{Scheme: node.Scheme, Host: node.Host, Path: r.URL.Path, RawPath: r.URL.RawPath,
			RawQuery: r.URL.RawQuery, ForceQuery: r.URL.ForceQuery}}
	if r.ContentLength != 0 && r.Body != nil {
		out.Body = &sentBody{ReadCloser: r.Body, passage: x}
	}
	return out.WithContext(ctx), nil
}

// hopHeader returns the headers of a request with those of the hop.
func hopHeader(r *http.Request) http.Header {
	h := r.Header.Clone()
	dropHopByHop(h)
	for _, name := range repeating() {
		if values, given := h[name]; given {
			h[hopSafe+name] = values
			delete(h, name)
		}
	}
	if _, given := h["User-Agent"]; !given {
		h["User-Agent"] = []string{""} // otherwise http.Transport names itself
	}
	h[hopRemote] = []string{r.RemoteAddr}
	if r.TLS != nil {
		h[hopSecure] = []string{"1"}
	}
	return h
}

// sentBody is the body of a request while it is sent.
type sentBody struct {
	io.ReadCloser
	passage *passage
}

// Read implements io.Reader.
func (b *sentBody) Read(p []byte) (int, error) {
	b.passage.begun.Store(true)
	b.passage.touched.Store(true)
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.passage.endBody(nil)
	} else if err != nil {
		b.passage.endBody(err)
	}
	return n, err
}

// Close implements io.Closer. The server of the client's connection closes the body.
func (b *sentBody) Close() error { return nil }

// Times of an answer that is being copied.
const (
	writeTime = 30 * time.Second // of one write to a slow client
	readTime  = time.Minute      // between two parts of an answer; the times of connections cut a dead node off before
)

// copyAnswer answers with the answer of a node, each part as it comes.
func (x *passage) copyAnswer(answer *http.Response, cancel context.CancelCauseFunc) error {
	dropHopByHop(answer.Header)
	dropHop(answer.Header)
	h := x.w.Header()
	for name, values := range answer.Header {
		h[name] = values
	}
	c := http.NewResponseController(x.w)
	_ = c.SetWriteDeadline(time.Now().Add(writeTime)) // a writer of a test has none
	x.w.WriteHeader(answer.StatusCode)
	buffer := x.proxy.buffers.borrow()
	defer x.proxy.buffers.giveBack(buffer)
	idle := time.AfterFunc(readTime, func() { cancel(errLate) })
	defer idle.Stop()
	for {
		n, err := answer.Body.Read(buffer[:])
		if n > 0 {
			idle.Stop()
			_ = c.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := x.w.Write(buffer[:n]); err != nil {
				return fmt.Errorf("%w: write: %w", errCut, err)
			}
			if answer.ContentLength < 0 {
				_ = c.Flush()
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errCut, err)
		}
		idle.Reset(readTime)
	}
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
