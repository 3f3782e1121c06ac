package listener_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agentledger/agentledger/internal/http/listener"
)

// counted counts how often its deadlines are set.
type counted struct {
	net.Conn
	moves atomic.Int64
}

func (c *counted) SetReadDeadline(t time.Time) error {
	c.moves.Add(1)
	return c.Conn.SetReadDeadline(t)
}

func (c *counted) SetWriteDeadline(t time.Time) error {
	c.moves.Add(1)
	return c.Conn.SetWriteDeadline(t)
}

// pair returns a connection, the network connection that it wraps, and its peer.
func pair(t *testing.T) (net.Conn, *counted, net.Conn) {
	mine, peer := net.Pipe()
	below := &counted{Conn: mine}
	t.Cleanup(func() { mine.Close(); peer.Close() })
	return listener.NewStrictConn(below), below, peer
}

// move sets a deadline during a call. Both times are relative to the start of the call.
type move struct{ at, to time.Duration }

// never represents no deadline, and past a deadline in the distant past.
const (
	never = time.Duration(1 << 62)
	past  = -time.Hour
)

// Calls end at the same time as on a connection without this package.
func TestCallsEndAsWithoutIt(t *testing.T) {
	for name, moves := range map[string][]move{
		"once":                     {{0, 5 * time.Second}},
		"later":                    {{0, 5 * time.Second}, {time.Second, 30 * time.Second}},
		"later and later":          {{0, 2 * time.Second}, {time.Second, 3 * time.Second}, {2500 * time.Millisecond, 9 * time.Second}},
		"earlier":                  {{0, time.Minute}, {time.Second, 2 * time.Second}},
		"later, then earlier":      {{0, 5 * time.Second}, {time.Second, time.Minute}, {7 * time.Second, 8 * time.Second}},
		"past before":              {{0, past}},
		"past while it waits":      {{0, time.Minute}, {time.Second, past}},
		"none, then past":          {{0, never}, {time.Second, past}},
		"taken away, then one":     {{0, 5 * time.Second}, {time.Second, never}, {10 * time.Second, 11 * time.Second}},
		"past, but taken back":     {{0, past}, {0, never}, {time.Second, 3 * time.Second}},
		"the same again":           {{0, 5 * time.Second}, {time.Second, 5 * time.Second}},
		"at once when it has come": {{0, time.Minute}, {9 * time.Second, 9 * time.Second}},
	} {
		for _, kind := range []string{"read", "write", "both"} {
			bare := ends(t, kind, moves, func(c net.Conn) net.Conn { return c })
			ours := ends(t, kind, moves, func(c net.Conn) net.Conn { return listener.NewStrictConn(c) })
			if ours != bare {
				t.Errorf("%s, %s: ended after %v, want %v", name, kind, ours, bare)
			}
		}
	}
}

// ends returns how long a call takes until its deadline ends it.
func ends(t *testing.T, kind string, moves []move, wrap func(net.Conn) net.Conn) (took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		mine, peer := net.Pipe()
		defer mine.Close()
		defer peer.Close()
		c := wrap(mine)
		began := time.Now()
		set := map[string]func(time.Time) error{"read": c.SetReadDeadline, "write": c.SetWriteDeadline, "both": c.SetDeadline}[kind]
		apply := func(m move) {
			to := began.Add(m.to)
			if m.to == never {
				to = time.Time{}
			}
			if err := set(to); err != nil {
				t.Error(err)
			}
		}
		for len(moves) > 0 && moves[0].at == 0 {
			apply(moves[0])
			moves = moves[1:]
		}
		go func() {
			for _, m := range moves {
				time.Sleep(time.Until(began.Add(m.at)))
				apply(m)
			}
		}()
		call := c.Read
		if kind == "write" {
			call = c.Write
		}
		n, err := call(make([]byte, 10))
		var timeout net.Error
		if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("got %d, %v, want a time-out", n, err)
		}
		took = time.Since(began)
	})
	return took
}

// If the deadline of a write is moved, no bytes are sent twice.
func TestWriteGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, peer := pair(t)
		want := []byte("0123456789")
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		type result struct {
			n   int
			err error
		}
		done := make(chan result)
		go func() {
			n, err := c.Write(want)
			done <- result{n, err}
		}()
		synctest.Wait()
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
		got := make([]byte, len(want))
		for i := range got {
			time.Sleep(400 * time.Millisecond)
			if _, err := io.ReadFull(peer, got[i:i+1]); err != nil {
				t.Fatal(err)
			}
		}
		if r := <-done; r.n != len(want) || r.err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %d, %v, %q", r.n, r.err, got)
		}
	})
}

// After a deadline has passed, the connection is usable again with a new deadline.
func TestAnotherDeadlineAfterATimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, peer := pair(t)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v, want a time-out", err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		go peer.Write([]byte("x"))
		got := make([]byte, 1)
		if n, err := c.Read(got); n != 1 || err != nil || got[0] != 'x' {
			t.Errorf("got %d, %v, %q", n, err, got)
		}
	})
}

// The deadlines that a server sets for each request are hardly ever set on the network connection.
func TestMovesThatDoNotReachBelow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, below, peer := pair(t)
		go func() {
			for range 1000 {
				_, _ = peer.Write([]byte("?"))
				_, _ = io.ReadFull(peer, make([]byte, 1))
				time.Sleep(time.Millisecond)
			}
			peer.Close()
		}()
		for {
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			_, err := io.ReadFull(c, make([]byte, 1))
			if err != nil {
				break
			}
			_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
			_ = c.SetReadDeadline(time.Time{})
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			_, _ = c.Write([]byte("!"))
			_ = c.SetWriteDeadline(time.Time{})
		}
		if got := below.moves.Load(); got > 4 {
			t.Errorf("the deadlines of the network connection were set %d times in 1,000 requests, want at most 4", got)
		}
	})
}

func TestAcceptedConnectionHasDeadlines(t *testing.T) {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := listener.NewListener(below, 0)
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := peer.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	_ = c.SetReadDeadline(time.Unix(1, 0))
	if _, err := io.ReadFull(c, make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a time-out", err)
	}
	l.Close()
	if _, err := l.Accept(); err == nil {
		t.Error("accepted from a listener that is closed")
	}
}

// A connection whose writing side is closed is read until the peer closes its side. A connection that cannot be half
// closed returns an error.
func TestHalfClose(t *testing.T) {
	below, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := listener.NewListener(below, 0)
	t.Cleanup(func() { l.Close() })
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { peer.Close() })
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	type halfCloser interface{ CloseWrite() error }
	closed := make(chan error, 1)
	go func() { closed <- accepted.(halfCloser).CloseWrite() }()
	if _, err := peer.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer reads %v, want the end", err)
	}
	select {
	case err := <-closed:
		t.Errorf("ended before the peer: %v", err)
	default:
	}
	peer.Close()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := accepted.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("reads %v, want the end", err)
	}
	piped, _, _ := pair(t)
	if err := piped.(halfCloser).CloseWrite(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("CloseWrite of a pipe: got %v", err)
	}
}
