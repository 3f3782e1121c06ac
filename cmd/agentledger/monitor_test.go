package main

import (
	"bufio"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A continuous monitor reports news, exposes its metrics, and ends without an error on SIGTERM.
func TestContinuousMonitor(t *testing.T) {
	server := startProcess(t, t.TempDir())
	red, blue := server.found(t.Context(), "red", nil), server.found(t.Context(), "blue", nil)
	for _, o := range []foundedOrganization{red, blue} {
		cmd := exec.Command(filepath.Join(programs, "aps"), "monitor", "--url", server.main+"/o/"+o.OrganizationID.String(), "--key", o.LogKey,
			"--state", filepath.Join(t.TempDir(), "state"), "--interval", "10ms", "--metrics-listen", "127.0.0.1:0")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		logs, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		line, err := bufio.NewReader(logs).ReadString('\n')
		address, ok := strings.CutPrefix(strings.TrimSpace(line), "aps: metrics at ")
		if err != nil || !ok {
			t.Fatalf("got %q, %v", line, err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "consistent: "+string(o.Origin)+", 0 entries (0 new)") {
			t.Fatalf("got %q, %v", line, err)
		}
		wantMetric(t, address, `agentledger_monitor_tree_size{origin="`+string(o.Origin)+`"} 0`)
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("after SIGTERM: %v", err)
		}
	}
}

func wantMetric(t *testing.T, url, line string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(body), line+"\n") {
		t.Errorf("no %s in %v\n%s", line, err, body)
	}
}
