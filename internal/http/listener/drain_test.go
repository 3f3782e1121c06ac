package listener_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// A drain responds to requests that have arrived, closes idle connections and accepts no new ones.
func TestDrain(t *testing.T) {
	p := newPlace(t, 0)
	idle, busy := p.idle(), p.busy()
	drained := make(chan error, 1)
	go func() { drained <- p.listener.Drain(t.Context()) }()
	if got, err := io.ReadAll(idle); err != nil || len(got) == 0 { // the answer it had before, then the end
		t.Errorf("idle: got %q, %v", got, err)
	}
	if c, err := net.Dial("tcp", p.listener.Addr().String()); err == nil {
		c.Close()
		t.Error("it still listens")
	}
	select {
	case err := <-drained:
		t.Errorf("drained while a request was under way: %v", err)
	default:
	}
	close(p.release)
	want(t, busy, http.StatusOK)
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// An unread request on an idle connection is read when the drain begins.
func TestDrainLosesNoRequest(t *testing.T) {
	p := unserved(t, 0)
	mine, client := held(p)
	const request = "GET / HTTP/1.1\r\n\r\n"
	io.WriteString(client, request)
	drained := make(chan error, 1)
	go func() { drained <- p.listener.Drain(t.Context()) }()
	if _, err := p.listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept: got %v", err)
	}
	if got := p.receive(mine); got != request {
		t.Errorf("got %q", got)
	}
	mine.Close()
	if err := <-drained; err != nil {
		t.Error(err)
	}
	if err := p.listener.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestDrainEndsWithItsContext(t *testing.T) {
	p := newPlace(t, 0)
	p.busy()
	ctx, cancel := context.WithCancel(t.Context())
	drained := make(chan error, 1)
	go func() { drained <- p.listener.Drain(ctx) }()
	cancel()
	if err := <-drained; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(p.release)
}

// A client that continues to use its connection gets the response to its next request, before and after the drain
// begins.
func TestDrainAnswersTheNextRequest(t *testing.T) {
	p := newPlace(t, 0)
	p.listener.Next = time.Hour
	c, other, busy := p.idle(), p.idle(), p.busy()
	drained := make(chan error, 1)
	go func() { drained <- p.listener.Drain(t.Context()) }()
	for {
		late, err := net.Dial("tcp", p.listener.Addr().String())
		if err != nil {
			break // it accepts no more
		}
		late.Close()
		time.Sleep(50 * time.Millisecond) // Accept goes on while connections come
	}
	close(p.release)
	for _, c := range []net.Conn{c, other, busy} {
		if c != busy { // the answer from before
			want(t, c, http.StatusOK)
		}
		p.send(c, "GET")
		want(t, c, http.StatusOK)
		c.Close()
	}
	if err := <-drained; err != nil {
		t.Error(err)
	}
}

// A connection without further requests ends.
func TestDrainEndsWithoutANextRequest(t *testing.T) {
	p := newPlace(t, 0)
	p.listener.Next = 50 * time.Millisecond
	c := p.idle()
	if err := p.listener.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	want(t, c, http.StatusOK)
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}
