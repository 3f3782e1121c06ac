// Package nodestest has the tools for tests of several nodes: TCP proxies that break the network between programs
// (Proxy), a record of clients' calls that is checked for linearizability (History), and a node table in memory
// (MemoryTable) with a test that any other table behaves in the same way (CompareTables). The drill of the program
// agentledger and the tests of package cluster use them.
//
// Invariants:
//
//   - Everything ends with the test: proxies, connections and goroutines.
//   - A check never fails for a service that is correct. A call whose outcome is unknown may have had its effect, or may
//     have it at any later time.
package nodestest

import (
	"errors"
	"net"
	"sync"
	"testing"
)

// Fault is a fault of a link. The zero value is a link that works.
//
// A held direction loses nothing: its bytes, and the end of its stream, wait as they do in TCP while packets are lost. The
// other direction continues. Connections are accepted while a direction is held, so the caller sees a program that does
// not answer, as if a packet of the handshake were lost.
type Fault struct {
	Cut         bool // connections end, and new ones are closed at once
	HoldCalls   bool // bytes from the caller wait
	HoldAnswers bool // bytes to the caller wait
}

// holds reports whether a direction is held.
func (f Fault) holds(answers bool) bool { return answers && f.HoldAnswers || !answers && f.HoldCalls }

// ProxyOptions configure NewProxy. Dial is required.
type ProxyOptions struct {
	Dial   func() (net.Conn, error)      // opens a connection to the program behind the proxy
	Caller func(connection net.Conn) int // number of the program that opened a connection; if nil, 0 for all
}

// Proxy forwards connections to one program. All connections of one caller are a link, and each link has its own fault,
// which also applies to later connections. The methods may be called concurrently.
type Proxy struct {
	options  ProxyOptions
	listener net.Listener
	running  sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	faults  map[int]Fault
	links   map[*link]struct{}
}

// link is one connection through a proxy.
type link struct {
	caller         int
	client, server net.Conn
	over           bool
}

// NewProxy starts a proxy on loopback that ends with the test.
func NewProxy(t testing.TB, o ProxyOptions) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{options: o, listener: l, faults: map[int]Fault{}, links: map[*link]struct{}{}}
	p.changed = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.end(func(*link) bool { return true })
		p.running.Wait()
	})
	return p
}

// Address returns the address of the proxy as host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Set sets the fault of a link. The zero Fault heals the link, and held bytes are delivered late.
func (p *Proxy) Set(caller int, f Fault) {
	p.mu.Lock()
	p.faults[caller] = f
	p.changed.Broadcast()
	p.mu.Unlock()
	if f.Cut {
		p.Reset(caller)
	}
}

// Reset closes the open connections of a link. Held bytes are lost.
func (p *Proxy) Reset(caller int) { p.end(func(l *link) bool { return l.caller == caller }) }

func (p *Proxy) end(match func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if match(l) {
			l.over = true
			_, _ = l.client.Close(), l.server.Close()
		}
	}
	p.changed.Broadcast()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil { // the test ends
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// serve forwards one connection.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	l := &link{client: client}
	if p.options.Caller != nil {
		l.caller = p.options.Caller(client)
	}
	if p.faultOf(l).Cut {
		return
	}
	var err error
	if l.server, err = p.options.Dial(); err != nil {
		return
	}
	defer l.server.Close()
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	defer p.forget(l)
	if p.faultOf(l).Cut { // set in the meantime
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copyBytes(l, l.server, l.client, false) })
	both.Go(func() { p.copyBytes(l, l.client, l.server, true) })
	both.Wait()
}

func (p *Proxy) forget(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) faultOf(l *link) Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults[l.caller]
}

// awaitPassage waits while a direction is held. It reports whether the connection is still open.
func (p *Proxy) awaitPassage(l *link, answers bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.faults[l.caller].holds(answers) && !l.over {
		p.changed.Wait()
	}
	return !l.over
}

// copyBytes forwards the bytes of one direction and the end of its stream.
func (p *Proxy) copyBytes(l *link, to, from net.Conn, answers bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !p.awaitPassage(l, answers) {
			return
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = errors.Join(err, failed)
			}
		}
		if err != nil {
			closeWrite(to)
			return
		}
	}
}

// closeWrite ends one direction of a connection.
func closeWrite(c net.Conn) {
	if half, is := c.(interface{ CloseWrite() error }); is {
		_ = half.CloseWrite() // the other end may be gone
		return
	}
	_ = c.Close()
}
