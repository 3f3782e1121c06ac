package granthttp

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// startNginx runs examples/grants/nginx.conf in front of two servers, and returns its address.
func startNginx(t *testing.T, grants, tool string) string {
	t.Helper()
	address := servicetest.FreeAddress(t)
	dir := t.TempDir()
	sample, err := os.ReadFile("../../examples/grants/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("127.0.0.1:9191", grants, "127.0.0.1:8000", tool, "127.0.0.1:8443", address).Replace(string(sample))
	var folders strings.Builder
	for _, name := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&folders, "%s_temp_path %s;\n", name, filepath.Join(dir, name))
	}
	whole := "worker_processes 1;\nevents {}\nhttp {\naccess_log off;\n" + folders.String() + text + "}\n"
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx"
	}
	c := exec.Command(program, "-c", file, "-p", dir, "-e", filepath.Join(dir, "error.log"), "-g", "daemon off; pid "+dir+"/nginx.pid;")
	var log strings.Builder
	c.Stdout, c.Stderr = &log, &log
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("tcp", address); err == nil {
			conn.Close()
			return address
		}
		if time.Now().After(end) {
			t.Fatalf("nginx is not ready: %s", &log)
		}
	}
}

// nginx, which others wrote, asks about each request with its body, and passes exactly the permitted ones on, with method,
// target and body as they were sent.
func TestNginx(t *testing.T) {
	v := makeVectors(t)
	s := newServer(t, v, func(c *Checker) http.Handler { return c.Authorizer("@tool") })
	tool := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, "%s %s %s", r.Method, r.RequestURI, b64(body))
	}))
	t.Cleanup(tool.Close)
	s.address = startNginx(t, s.address, tool.Listener.Addr().String())
	for _, c := range v.Cases {
		if len(c.Target) > maxTarget || c.BodySize > MaxBody || strings.Contains(c.Target, "%00") || strings.Contains(c.Target, "..") {
			continue // nginx refuses these itself
		}
		status, body := s.answer(t, c)
		want := c.Error
		if c.Status == 200 {
			want = fmt.Sprintf("%s %s %s", c.Method, c.Target, b64(c.body()))
		}
		if status != c.Status || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %d %s, want %d %s", c.Name, status, body, c.Status, want)
		}
	}
}
