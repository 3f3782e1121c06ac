package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
)

// A server of these tests is suspended for longer than each of its time-outs. The time-out for bodies is long enough
// for a slow test.
const (
	shortTime  = 100 * time.Millisecond
	bodyTime   = 2 * time.Second
	standstill = bodyTime + 200*time.Millisecond
)

// shortTimes are time-outs that pass during the suspension.
func shortTimes() []string {
	return []string{"tuning.header_timeout=" + shortTime.String(), "tuning.body_timeout=" + bodyTime.String(), "tuning.answer_timeout=" + shortTime.String()}
}

// stand suspends the server for a while. It is already suspended when f runs.
func (p *process) stand(while time.Duration, f func()) {
	p.signal(syscall.SIGSTOP)
	defer p.signal(syscall.SIGCONT)
	f()
	time.Sleep(while)
}

// caller is one connection to a server.
type caller struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func (p *process) call(t testing.TB) *caller {
	t.Helper()
	c, err := net.Dial("tcp", p.host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &caller{c, t, bufio.NewReader(c)}
}

func (c *caller) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Error(err)
	}
}

// want reads a response with a status.
func (c *caller) want(what string, status int) (answered bool) {
	c.t.Helper()
	r, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Errorf("%s: no answer: %v", what, err)
		return false
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != status {
		c.t.Errorf("%s: got %d %s, %v; want %d", what, r.StatusCode, body, err, status)
	}
	return true
}

const livez = "GET /livez HTTP/1.1\r\nHost: log.test\r\n\r\n"

// A server that was suspended for longer than its time-outs still answers what was sent to it in the meantime: no
// request is cut off, on new or existing connections, in the middle of a body or before its response.
func TestStandstill(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), shortTimes()...)
	org := p.found(t.Context(), "red", nil)
	w, err := newWorker(p.main, org, client.Retry{})
	if err != nil {
		t.Fatal(err)
	}
	event := func(name string) (head, body string) {
		envelope, err := w.signer.SignEvent(client.Event{TraceID: "t", ActionKind: name})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("POST /v1/ingest/events HTTP/1.1\r\nHost: log.test\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n", org.IngestKey.Secret, len(envelope)), string(envelope)
	}
	for range 2 {
		unused, kept, half := p.call(t), p.call(t), p.call(t)
		kept.send(livez)
		kept.want("before", http.StatusOK)
		head, body := event("half")
		half.send(head + "Expect: 100-continue\r\n\r\n")
		if line, err := half.r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
			t.Fatalf("%q, %v", line, err)
		}
		half.r.ReadString('\n') // the empty line after it
		half.send(body[:10])
		p.stand(standstill, func() {
			unused.send(livez)
			kept.send(livez)
			half.send(body[10:])
		})
		unused.want("unused", http.StatusOK)
		kept.want("kept", http.StatusOK)
		half.want("half a body", http.StatusCreated)
	}
}

// Each request of many senders is answered, although the server is suspended repeatedly.
func TestStandstillUnderLoad(t *testing.T) {
	t.Parallel()
	p := startProcess(t, t.TempDir(), shortTimes()...)
	org := p.found(t.Context(), "red", nil)
	stop := make(chan struct{})
	var group sync.WaitGroup
	for n := range 16 {
		w, err := newWorker(p.main, org, client.Retry{})
		if err != nil {
			t.Fatal(err)
		}
		c := p.call(t)
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				envelope, err := w.signer.SignEvent(client.Event{TraceID: "t", ActionKind: "tool_call"})
				if err != nil {
					t.Error(err)
					return
				}
				c.send(fmt.Sprintf("POST /v1/ingest/events HTTP/1.1\r\nHost: log.test\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", org.IngestKey.Secret, len(envelope), envelope))
				if !c.want(fmt.Sprintf("sender %d, request %d", n, i), http.StatusCreated) {
					return
				}
			}
		})
	}
	for range 4 {
		p.stand(4*shortTime, func() {})
		time.Sleep(50 * time.Millisecond)
	}
	close(stop)
	group.Wait()
}

// Requests that have arrived on a server's connections, new or existing, when it receives SIGTERM are answered.
func TestDrainAnswersArrivedRequests(t *testing.T) {
	p := startProcess(t, t.TempDir())
	var kept []*caller
	for range 8 {
		c := p.call(t)
		c.send(livez)
		c.want("before", http.StatusOK)
		kept = append(kept, c)
	}
	unused, queued := p.call(t), (*caller)(nil)
	p.stand(0, func() {
		queued = p.call(t)
		for _, c := range append(kept, unused, queued) {
			c.send(livez)
		}
		p.signal(syscall.SIGTERM)
	})
	for i, c := range append(kept, unused, queued) {
		c.want(fmt.Sprint("connection ", i), http.StatusOK)
		if _, err := c.r.ReadByte(); err != io.EOF {
			t.Errorf("connection %d: got %v, want the end", i, err)
		}
	}
	if err := p.wait(); err != nil {
		t.Errorf("the server ended with %v\n%s", err, p.logs)
	}
}
