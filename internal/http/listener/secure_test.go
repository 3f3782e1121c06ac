package listener_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/http/listener"
)

// A TLS connection can be used for longer than a response may take. Another one that reads no response is cut off.
func TestSecureConnectionOutlivesADeadline(t *testing.T) {
	lender := httptest.NewTLSServer(nil) // of its certificate
	t.Cleanup(lender.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bounded, failed := listener.NewListener(tls.NewListener(l, lender.TLS), 0), make(chan error, 1)
	server := &http.Server{ConnState: bounded.ConnState, WriteTimeout: brief,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for block := make([]byte, 1<<20); r.Method == http.MethodPost; {
				if _, err := w.Write(block); err != nil {
					failed <- err
					return
				}
			}
		})}
	go server.Serve(bounded)
	t.Cleanup(func() { server.Close() })
	dial := func() net.Conn {
		c, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	neighbour, mine := dial(), dial()
	io.WriteString(neighbour, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	answers := bufio.NewReader(mine)
	for range 3 {
		io.WriteString(mine, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		if r, err := http.ReadResponse(answers, nil); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("got %v, %v", r, err)
		}
		<-time.After(2 * brief)
	}
	if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the neighbour: got %v, want %v", err, os.ErrDeadlineExceeded)
	}
}

// broken is a connection that fails each call, as crypto/tls does after a timeout.
type broken struct {
	net.Conn
	calls int
}

func (b *broken) Read([]byte) (int, error) {
	b.calls++
	return 0, os.ErrDeadlineExceeded
}

func (b *broken) Write([]byte) (int, error) {
	b.calls++
	return 0, os.ErrDeadlineExceeded
}

func TestBrokenConnectionIsNotTriedAgain(t *testing.T) {
	for name, call := range map[string]func(net.Conn) (int, error){
		"read":  func(c net.Conn) (int, error) { return c.Read(make([]byte, 1)) },
		"write": func(c net.Conn) (int, error) { return c.Write(make([]byte, 1)) },
	} {
		mine, peer := net.Pipe()
		below := &broken{Conn: mine}
		c := listener.NewStrictConn(below)
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := call(c); !errors.Is(err, os.ErrDeadlineExceeded) || below.calls != 1 {
			t.Errorf("%s: got %v after %d calls, want %v after one", name, err, below.calls, os.ErrDeadlineExceeded)
		}
		mine.Close()
		peer.Close()
	}
}
