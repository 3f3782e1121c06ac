package nodestest_test

import (
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/nodestest"
)

// echo starts a server that sends back each byte and counts the bytes.
func echo(t *testing.T) (address string, came *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	came = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				one := make([]byte, 1)
				for {
					if _, err := io.ReadFull(c, one); err != nil {
						return
					}
					came.Add(1)
					if _, err := c.Write(one); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), came
}

// client is a connection through a proxy.
type client struct {
	t *testing.T
	net.Conn
	answers chan byte // closed with the connection
}

func dial(t *testing.T, p *nodestest.Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	made := &client{t, c, make(chan byte, 16)}
	go func() {
		defer close(made.answers)
		one := make([]byte, 1)
		for {
			if _, err := io.ReadFull(c, one); err != nil {
				return
			}
			made.answers <- one[0]
		}
	}()
	return made
}

func (c *client) send(b byte) {
	c.t.Helper()
	if _, err := c.Write([]byte{b}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) want(b byte) {
	c.t.Helper()
	if got, open := <-c.answers; !open || got != b {
		c.t.Errorf("got %q, open %v, want %q", got, open, b)
	}
}

func (c *client) wantEnd() {
	c.t.Helper()
	if got, open := <-c.answers; open {
		c.t.Errorf("got %q, want the end of the connection", got)
	}
}

// wantSilence checks that no answer has arrived.
func (c *client) wantSilence() {
	c.t.Helper()
	select {
	case got, open := <-c.answers:
		c.t.Errorf("got %q, open %v, want nothing", got, open)
	case <-time.After(50 * time.Millisecond):
	}
}

// Each fault breaks the link of only one caller, and held bytes are delivered late.
func TestFaults(t *testing.T) {
	address, came := echo(t)
	var caller atomic.Int64
	p := nodestest.NewProxy(t, nodestest.ProxyOptions{Dial: func() (net.Conn, error) { return net.Dial("tcp", address) },
		Caller: func(net.Conn) int { return int(caller.Load()) }})
	red := dial(t, p)
	red.send('a')
	red.want('a')
	caller.Store(1)
	blue := dial(t, p)
	blue.send('b')
	blue.want('b')

	p.Set(0, nodestest.Fault{HoldCalls: true})
	red.send('c')
	red.wantSilence()
	if got := came.Load(); got != 2 {
		t.Errorf("calls are held: got %d bytes at the server, want 2", got)
	}
	blue.send('d')
	blue.want('d')
	p.Set(0, nodestest.Fault{})
	red.want('c')

	p.Set(0, nodestest.Fault{HoldAnswers: true})
	red.send('e')
	for came.Load() != 5 { // the server got it
		time.Sleep(time.Millisecond)
	}
	red.wantSilence()
	p.Reset(0)
	red.wantEnd()
	p.Set(0, nodestest.Fault{Cut: true})
	caller.Store(0)
	dial(t, p).wantEnd()
	blue.send('f')
	blue.want('f')
	p.Set(0, nodestest.Fault{})
	again := dial(t, p)
	again.send('g')
	again.want('g')
}

// On Linux, the process that opened a connection is known.
func TestCallerOf(t *testing.T) {
	address, _ := echo(t)
	found := make(chan int, 1)
	p := nodestest.NewProxy(t, nodestest.ProxyOptions{Dial: func() (net.Conn, error) { return net.Dial("tcp", address) },
		Caller: func(c net.Conn) int {
			found <- nodestest.CallerOf(c, []int{1, os.Getpid()})
			return 0
		}})
	dial(t, p)
	want := 0
	if runtime.GOOS == "linux" {
		want = os.Getpid()
	}
	if got := <-found; got != want {
		t.Errorf("got process %d, want %d", got, want)
	}
}
