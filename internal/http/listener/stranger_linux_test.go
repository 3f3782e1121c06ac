package listener_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/listener"
)

// strangerPlace is a TLS listener with a low bound of connections, and of connections without a completed handshake.
type strangerPlace struct {
	*testing.T
	listener *listener.Listener
	address  string
}

func newStrangerPlace(t *testing.T) *strangerPlace {
	t.Helper()
	lender := httptest.NewTLSServer(nil) // of its certificate
	t.Cleanup(lender.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &strangerPlace{t, listener.NewListener(tls.NewListener(l, lender.TLS), 3), l.Addr().String()}
	p.listener.Unused, p.listener.Spare, p.listener.Strangers = time.Minute, 2, 4
	server := &http.Server{ConnState: p.listener.ConnState, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go server.Serve(p.listener)
	t.Cleanup(func() { server.Close() })
	return p
}

// dialFrom opens a connection from an address of the loopback network.
func (p *strangerPlace) dialFrom(address string) net.Conn {
	p.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c, err := from.DialContext(p.Context(), "tcp", p.address)
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { c.Close() })
	return c
}

func (p *strangerPlace) shakeHands(c net.Conn) *tls.Conn {
	p.Helper()
	secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	if err := secure.HandshakeContext(p.Context()); err != nil {
		p.Fatal(err)
	}
	return secure
}

// ask sends a request and expects its response.
func (p *strangerPlace) ask(c net.Conn) {
	p.Helper()
	_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || r.StatusCode != http.StatusOK {
		p.Fatalf("got %v, %v", r, err)
	}
}

// Connections without a completed handshake evict neither idle connections nor a connection of another address during
// its handshake. They never exceed their bound.
func TestStrangersPushNobodyOut(t *testing.T) {
	p := newStrangerPlace(t)
	mine := []*tls.Conn{p.shakeHands(p.dialFrom("127.0.0.1")), p.shakeHands(p.dialFrom("127.0.0.1"))}
	for _, c := range mine {
		p.ask(c)
	}
	slow := p.dialFrom("127.0.0.1") // shakes hands after the others came
	for i := range 60 {
		c := p.dialFrom("127.0.0.2")
		if i%3 == 1 {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		}
	}
	p.await("few connections", func(c listener.Connections) bool { return c.Open <= 2+4 && c.Evicted >= 30 })
	p.ask(p.shakeHands(slow))
	for _, c := range mine {
		p.ask(c)
	}
	p.ask(p.shakeHands(p.dialFrom("127.0.0.1"))) // beyond the bound: one that is idle has to go
	if got := p.listener.Connections(); got.Open > 3+4 || got.Refused != 0 {
		t.Errorf("got %+v", got)
	}
}

// A drain waits neither for connections without a completed handshake nor for a connection that completes it in the
// meantime and sends nothing.
func TestDrainWaitsForNoStranger(t *testing.T) {
	p := newStrangerPlace(t)
	p.dialFrom("127.0.0.2")
	slow := p.dialFrom("127.0.0.1")
	p.await("both are there", func(c listener.Connections) bool { return c.Open == 2 })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.listener.Drain(ctx) }()
	_ = tls.Client(slow, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) // it may be too late
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func (p *strangerPlace) await(what string, holds func(listener.Connections) bool) {
	p.Helper()
	for end := time.Now().Add(time.Minute); !holds(p.listener.Connections()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.Fatalf("%s: got %+v", what, p.listener.Connections())
		}
	}
}
