package listener_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
)

// A drain answers what has come, closes what is idle and takes nothing new.
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

// A request that lies unread in an idle connection when the drain begins is read.
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
