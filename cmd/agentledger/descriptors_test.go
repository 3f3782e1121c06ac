package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/client"
	"github.com/agentledger/agentledger/id"
)

// startWithFiles is startProcess for a server with a limit of open files.
func startWithFiles(t *testing.T, files int, dir string, more ...string) (*process, error) {
	t.Helper()
	args := append([]string{"-c", fmt.Sprintf(`ulimit -n %d && exec "$0" "$@"`, files), filepath.Join(programs, "agentledger"),
		"serve", "--data", dir, "--listen", "127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0",
		"--public-url", "http://log.test", "--log-level", "warn"}, withTuning(t.TempDir(), t.Fatal, more)...)
	cmd := exec.Command("sh", args...)
	cmd.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+testSecret)
	p, err := launch(cmd)
	if err == nil {
		p.t = t
		t.Cleanup(p.kill)
	}
	return p, err
}

// A thousand idle connections of strangers neither take the files that the store needs nor shut agents out, and the log
// does not fill.
func TestIdleConnectionsTakeNoFiles(t *testing.T) {
	dir := t.TempDir()
	p, err := startWithFiles(t, 256, dir, "tuning.idle_timeout=1h") // so that connections end for one reason only
	if err != nil {
		t.Fatal(err)
	}
	red, blue := p.found(t.Context(), "red", nil), p.found(t.Context(), "blue", nil)
	sent := 0
	send := func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		for _, org := range []foundedOrganization{red, blue} {
			w, err := newWorker(p.main, org, client.Retry{})
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				sent++
				envelope, err := w.signer.SignEvent(client.Event{EventID: id.Event(fmt.Sprint("e", sent)), TraceID: "t", ActionKind: "tool_call"})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.client.Send(ctx, envelope); err != nil {
					t.Fatalf("%s: event of %s: %v\n%.2000s", what, org.Slug, err, p.logs)
				}
			}
			if c, err := w.log.fetchHead(ctx); err != nil || c.Size < 5 {
				t.Fatalf("%s: head of %s: %+v, %v", what, org.Slug, c, err)
			}
		}
	}
	send("before")
	var strangers []net.Conn
	for n := range 1000 {
		address := p.host
		if n%4 == 3 {
			address = strings.TrimPrefix(p.identity, "http://")
		}
		c, err := net.DialTimeout("tcp", address, time.Minute)
		if err != nil {
			t.Fatalf("stranger %d: %v", n, err)
		}
		defer c.Close()
		strangers = append(strangers, c)
		if n%100 == 99 {
			send(fmt.Sprint("among ", n+1, " strangers"))
		}
	}
	for _, c := range strangers {
		c.Close()
	}
	send("after")
	if lines := strings.Count(p.logs.String(), "\n"); lines > 20 || !strings.Contains(p.logs.String(), "fewer connections than tuning.max_connections") {
		t.Errorf("got %d lines in the log, want a few, with one of the bound:\n%.2000s", lines, p.logs)
	}
	p.terminate()
	p = startProcess(t, dir)
	for _, org := range []foundedOrganization{red, blue} {
		l, err := newPublicLog(p.main, org)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := l.fetchHead(t.Context()); err != nil || int(c.Size) < sent/2 {
			t.Errorf("%s after a restart: %+v, %v; want %d events", org.Slug, c, err, sent/2)
		}
	}
}

// A server whose limit of open files is too low reports it before it creates anything.
func TestTooFewFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	_, err := startWithFiles(t, 100, dir)
	if err == nil || !strings.Contains(err.Error(), "the process may open 100 files, but needs 256") {
		t.Errorf("got %v, want an error that names the limit", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the data directory: got %v, want none", err)
	}
}
