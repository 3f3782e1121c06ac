package pgstore_test

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// cut is the point at which a proxy breaks connections.
type cut int

const (
	nowhere cut = iota
	before      // what the client sends never arrives
	during      // half of what it sends arrives
	after       // all arrives, and the server's answer is lost
)

// proxy is a TCP connection between an engine and its server that can be cut.
type proxy struct {
	listener net.Listener
	server   string // path of a Unix socket
	cuts     atomic.Int32
	done     sync.WaitGroup

	mu    sync.Mutex
	where cut
	match []byte // only a request with these bytes is cut
	conns map[net.Conn]bool
}

func newProxy(t *testing.T, s *pgtest.Server) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: s.Socket(), conns: make(map[net.Conn]bool)}
	p.done.Go(p.accept)
	t.Cleanup(func() {
		p.listener.Close()
		p.closeAll()
		p.done.Wait()
	})
	return p
}

// url returns a URL of the server through the proxy.
func (p *proxy) url(t *testing.T, direct string) string {
	t.Helper()
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = p.listener.Addr().String(), q.Encode()
	return u.String()
}

// cut breaks connections from now on at requests that contain match.
func (p *proxy) cut(where cut, match string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.where, p.match = where, []byte(match)
}

// at returns the point at which to cut a request.
func (p *proxy) at(request []byte) cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.where != nowhere && bytes.Contains(request, p.match) {
		p.cuts.Add(1)
		return p.where
	}
	return nowhere
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", p.server)
		if err != nil {
			client.Close()
			continue
		}
		p.keep(client, server)
		var answerless atomic.Bool
		p.done.Go(func() { p.requests(client, server, &answerless) })
		p.done.Go(func() { p.answers(server, client, &answerless) })
	}
}

func (p *proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
}

func (p *proxy) closeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// requests copies what the client sends until either end is closed.
func (p *proxy) requests(client, server net.Conn, answerless *atomic.Bool) {
	defer client.Close()
	defer server.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		switch p.at(buffer[:n]) {
		case before:
			return
		case during:
			_, _ = server.Write(buffer[:n/2]) // the connection ends either way
			return
		case after:
			answerless.Store(true)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// answers copies what the server sends.
func (p *proxy) answers(server, client net.Conn, answerless *atomic.Bool) {
	defer client.Close()
	defer server.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || answerless.Load() {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}
