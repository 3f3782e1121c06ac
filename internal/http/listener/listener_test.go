package listener_test

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/agentledger/agentledger/internal/http/listener"
)

// place is a server whose connections are bounded. It responds to a GET when release is closed, and to other requests
// at once.
type place struct {
	testing.TB
	listener *listener.Listener
	states   chan http.ConnState
	release  chan struct{}
}

func newPlace(t testing.TB, max int) *place {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{TB: t, listener: listener.NewListener(l, max), states: make(chan http.ConnState, 100), release: make(chan struct{})}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				<-p.release
			}
		}),
		ConnState: func(c net.Conn, s http.ConnState) {
			p.listener.ConnState(c, s)
			p.states <- s
		},
	}
	go server.Serve(p.listener)
	t.Cleanup(func() { server.Close() })
	return p
}

// dial opens a connection.
func (p *place) dial() net.Conn {
	p.Helper()
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { c.Close() })
	return c
}

// until waits for the next change to a state.
func (p *place) until(want http.ConnState) {
	for s := range p.states {
		if s == want {
			return
		}
	}
}

func (p *place) send(c net.Conn, method string) {
	p.Helper()
	if _, err := io.WriteString(c, method+" / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		p.Error(err)
	}
}

// idle opens a connection that has received its response.
func (p *place) idle() net.Conn {
	p.Helper()
	c := p.dial()
	p.send(c, "HEAD")
	p.until(http.StateIdle)
	return c
}

// busy opens a connection that waits for its response.
func (p *place) busy() net.Conn {
	p.Helper()
	c := p.dial()
	p.send(c, "GET")
	p.until(http.StateActive)
	return c
}

func TestListenerClosesTheLongestIdle(t *testing.T) {
	p := newPlace(t, 3)
	p.busy()
	first, second := p.idle(), p.idle()
	p.busy()
	if _, err := io.ReadAll(first); err != nil { // ends, since it was closed
		t.Error(err)
	}
	if got, want := p.listener.Connections(), (listener.Connections{Open: 3, Evicted: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	p.send(second, "HEAD")
	p.until(http.StateIdle) // it lives
}

func TestListenerRefusesWhenAllAreBusy(t *testing.T) {
	p := newPlace(t, 2)
	p.busy()
	p.busy()
	refused, err := io.ReadAll(p.dial())
	if got := string(refused); err != nil || !strings.HasPrefix(got, "HTTP/1.1 503 ") || !strings.HasSuffix(got, `"code":"overloaded"}`) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, want := p.listener.Connections(), (listener.Connections{Open: 2, Refused: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	close(p.release)
	p.until(http.StateIdle)
	p.idle() // there is room again
}

func TestListenerGivesRoomBack(t *testing.T) {
	p := newPlace(t, 1)
	for range 3 {
		c := p.dial()
		p.until(http.StateNew)
		c.Close()
		p.until(http.StateClosed)
	}
	if got := p.listener.Connections(); got.Evicted != 0 || got.Refused != 0 {
		t.Errorf("got %+v, want no eviction and no refusal", got)
	}
}
