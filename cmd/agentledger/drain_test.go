package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
)

// A server that receives SIGTERM accepts no new connection, completes the request in progress, and keeps what it
// acknowledged.
func TestDrain(t *testing.T) {
	dir := t.TempDir()
	p := startProcess(t, dir)
	org := p.found(t.Context(), "red", nil)
	w, err := newWorker(p.main, org, client.Retry{})
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := w.signer.SignEvent(client.Event{EventID: "late", TraceID: "t", ActionKind: "tool_call"})
	if err != nil {
		t.Fatal(err)
	}
	finish := beginRequest(t, p, org, envelope)
	p.signal(syscall.SIGTERM)
	for end := time.Now().Add(2 * time.Minute); ; {
		c, err := net.Dial("tcp", p.host)
		if err != nil {
			break
		}
		c.Close()
		if time.Now().After(end) {
			t.Fatal("the server continues to listen")
		}
	}
	if status, body := finish(); status != http.StatusCreated || !strings.Contains(body, `"sequence_num":1,`) {
		t.Errorf("got %d %s", status, body)
	}
	if err := p.wait(); err != nil {
		t.Errorf("the server ended with %v\n%s", err, p.logs)
	}
	p = startProcess(t, dir)
	l, err := newPublicLog(p.main, org)
	if err != nil {
		t.Fatal(err)
	}
	if _, report, err := l.log.Bundle(t.Context(), "late"); err != nil || !report.OK {
		t.Errorf("after the restart: %v, %v", err, report.Errors)
	}
}

// beginRequest sends an event without its last byte and waits until the server is reading it. finish sends that byte
// and returns the response.
func beginRequest(t *testing.T, p *process, org foundedOrganization, envelope []byte) (finish func() (status int, body string)) {
	t.Helper()
	c, err := net.Dial("tcp", p.host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /v1/ingest/events HTTP/1.1\r\nHost: log.test\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
		org.IngestKey.Secret, len(envelope))
	answers := bufio.NewReader(c)
	if line, err := answers.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	answers.ReadString('\n') // the empty line after it
	last := len(envelope) - 1
	c.Write(envelope[:last])
	return func() (int, string) {
		c.Write(envelope[last:])
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		return r.StatusCode, string(body)
	}
}
