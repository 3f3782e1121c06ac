package listener_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/listener"
)

// brief is a timeout that expires within a test.
const brief = 100 * time.Millisecond

// timed returns a place whose server has a brief timeout for everything except idle connections.
func timed(t *testing.T, h http.HandlerFunc) *place {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{TB: t, listener: listener.NewListener(l, 0)}
	server := &http.Server{Handler: h, ConnState: p.listener.ConnState, ReadHeaderTimeout: brief, ReadTimeout: brief, WriteTimeout: brief, IdleTimeout: time.Hour}
	go server.Serve(p.listener)
	t.Cleanup(func() { server.Close() })
	return p
}

// want reads a response and checks its status.
func want(t *testing.T, c net.Conn, status int) *http.Response {
	t.Helper()
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	if r.StatusCode != status {
		t.Errorf("got %s, want %d", r.Status, status)
	}
	return r
}

func ok(http.ResponseWriter, *http.Request) {}

func TestSlowHeadersAreAnswered(t *testing.T) {
	p := timed(t, ok)
	first, later := p.dial(), p.dial()
	p.send(later, "GET")
	want(t, later, http.StatusOK)
	for name, c := range map[string]net.Conn{"first request": first, "later request": later} {
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		body, err := io.ReadAll(want(t, c, http.StatusRequestTimeout).Body)
		if got := string(body); err != nil || got != `{"error":"The headers took too long to arrive"}` {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("%s: got %v, want the end", name, err)
		}
	}
}

// The time for headers starts with their first byte, also on an unused connection.
func TestUnusedConnectionIsKept(t *testing.T) {
	p := timed(t, ok)
	unused, slow := p.dial(), p.dial()
	io.WriteString(slow, "GET")
	want(t, slow, http.StatusRequestTimeout) // so the time for headers is over
	p.send(unused, "GET")
	want(t, unused, http.StatusOK)
}

func TestUnusedConnectionIsClosedInTheEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded := listener.NewListener(l, 0)
	bounded.Unused = brief
	server := &http.Server{ConnState: bounded.ConnState, ReadHeaderTimeout: time.Hour}
	go server.Serve(bounded)
	t.Cleanup(func() { server.Close() })
	p := &place{TB: t, listener: bounded}
	if got, err := io.ReadAll(p.dial()); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v; want the end", got, err)
	}
}

// A body that was sent in time is read, however late. A body that was sent too late is not.
func TestReadDeadlineThatWasOverlooked(t *testing.T) {
	read := make(chan error, 1)
	p := timed(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(3 * brief)
		_, err := io.ReadAll(r.Body)
		read <- err
	})
	for name, tc := range map[string]struct {
		body string
		want error
	}{"all sent": {"12345", nil}, "half sent": {"12", os.ErrDeadlineExceeded}} {
		c := p.dial()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n"+tc.body)
		if got := <-read; !errors.Is(got, tc.want) {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
		want(t, c, http.StatusOK)
	}
}

func TestWriteDeadlineThatWasOverlooked(t *testing.T) {
	p := timed(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(3 * brief)
		io.WriteString(w, "late")
	})
	c := p.dial()
	for range 2 { // the connection can be used again
		p.send(c, "GET")
		body, err := io.ReadAll(want(t, c, http.StatusOK).Body)
		if string(body) != "late" {
			t.Errorf("got %q, %v", body, err)
		}
	}
}

// A deadline is extended only once, so a client that reads nothing does not hold its connection.
func TestWriteDeadlineOfASlowReader(t *testing.T) {
	failed := make(chan error, 1)
	p := timed(t, func(w http.ResponseWriter, r *http.Request) {
		for block := make([]byte, 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				failed <- err
				return
			}
		}
	})
	p.send(p.dial(), "GET")
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A client that sends a large body completely before it reads still gets the earlier response.
func TestEarlyAnswerToALargeBody(t *testing.T) {
	p := timed(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusRequestEntityTooLarge) })
	c := p.dial()
	body := strings.Repeat("x", 8<<20)
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8388608\r\n\r\n"+body); err != nil {
		t.Errorf("send: %v", err)
	}
	want(t, c, http.StatusRequestEntityTooLarge)
}

// held returns an accepted connection that no http.Server reads, and its client.
func held(p *place) (mine, client net.Conn) {
	p.Helper()
	client = p.dial()
	mine, err := p.listener.Accept()
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { mine.Close() })
	return mine, client
}

// receive reads headers and then waits for the end of the connection, like http.Server.
func (p *place) receive(mine net.Conn) string {
	p.Helper()
	b := make([]byte, 1000)
	n, err := mine.Read(b)
	if err != nil {
		p.Error(err)
	}
	p.listener.ConnState(mine, http.StateActive)
	p.listener.ConnState(mine, http.StateIdle)
	if _, err := mine.Read(b[n:]); err != io.EOF {
		p.Errorf("after the request: got %v, want the end", err)
	}
	return string(b[:n])
}

func unserved(t *testing.T, max int) *place {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &place{TB: t, listener: listener.NewListener(l, max)}
}

// An evicted idle connection still delivers a request that arrived in the meantime.
func TestEvictionLosesNoRequest(t *testing.T) {
	p := unserved(t, 1)
	mine, client := held(p)
	io.WriteString(client, "GET / HTTP/1.1\r\n\r\n")
	held(p)
	if got := p.receive(mine); got != "GET / HTTP/1.1\r\n\r\n" {
		t.Errorf("got %q", got)
	}
	if _, err := io.WriteString(mine, "answer"); err != nil {
		t.Errorf("the answer: %v", err)
	}
}

func TestEvictionAmongHeadersIsAnswered(t *testing.T) {
	p := unserved(t, 1)
	mine, client := held(p)
	io.WriteString(client, "GET / HT")
	held(p)
	if got, err := io.ReadAll(mine); string(got) != "GET / HT" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %q, %v", got, err)
	}
	if got := want(t, client, http.StatusServiceUnavailable).Header.Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After: got %q", got)
	}
}

// A connection whose request has begun to arrive is not idle.
func TestHeadersOnTheirWayKeepAConnection(t *testing.T) {
	p := unserved(t, 1)
	mine, client := held(p)
	io.WriteString(client, "GET")
	if _, err := mine.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	go p.listener.Accept() // refuses
	want(t, p.dial(), http.StatusServiceUnavailable)
	if got, want := p.listener.Connections(), (listener.Connections{Open: 1, Refused: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
