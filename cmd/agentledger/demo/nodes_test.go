package demo

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

func TestMain(m *testing.M) { os.Exit(servicetest.Main(m)) }

// nodesDemo is a run of the real program, whose temporary files are in a folder of the test.
type nodesDemo struct {
	*testing.T
	command *exec.Cmd
	lines   *bufio.Scanner
	errors  bytes.Buffer
	files   string
}

func startDemo(t *testing.T, args ...string) *nodesDemo {
	t.Helper()
	files, err := os.MkdirTemp("", "demo") // short, because the path of a socket is bounded
	if err == nil {
		err = os.Chmod(files, 0o711) // PostgreSQL runs as another user
	}
	if err != nil {
		t.Fatal(err)
	}
	d := &nodesDemo{T: t, files: files, command: exec.Command(servicetest.Program(t), append([]string{"demo"}, args...)...)}
	d.command.Env = append(os.Environ(), "TMPDIR="+files, "AGENTLEDGER_STORAGE=postgres://elsewhere/", "PGHOST=elsewhere")
	d.command.Stderr = &d.errors
	out, err := d.command.StdoutPipe()
	if err == nil {
		err = d.command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.command.Process.Kill()
		_ = d.command.Wait()
		_ = os.RemoveAll(files)
	})
	d.lines = bufio.NewScanner(out)
	return d
}

// readUntil returns the lines up to one that matches, and its parts.
func (d *nodesDemo) readUntil(pattern string) (read string, parts []string) {
	d.Helper()
	want := regexp.MustCompile(pattern)
	for d.lines.Scan() {
		read += d.lines.Text() + "\n"
		if parts = want.FindStringSubmatch(d.lines.Text()); parts != nil {
			return read, parts
		}
	}
	d.Fatalf("the demo did not print %q:\n%s%s", pattern, read, d.errors.String())
	return "", nil
}

// wantGone checks that the demo has exited with a status and left neither files nor processes.
func (d *nodesDemo) wantGone(status int) {
	d.Helper()
	_ = d.command.Wait()
	if got := d.command.ProcessState.ExitCode(); got != status {
		d.Errorf("got status %d, want %d\n%s", got, status, d.errors.String())
	}
	if left, err := os.ReadDir(d.files); err != nil || len(left) > 0 {
		d.Errorf("remaining files: %v, %v", left, err)
	}
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline") // none on other systems
	for _, file := range commands {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), d.files) {
			d.Errorf("a process is still running: %q", text)
		}
	}
}

// The demo passes, and prints what the document shows except for numbers, keys and times.
func TestDemo(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--nodes", "3", "--once")
	printed, _ := d.readUntil(`^[0-9]+ checks passed, 0 failed$`)
	d.wantGone(0)
	if strings.Contains(printed, "FAIL") {
		t.Errorf("a check failed:\n%s", printed)
	}
	got, want := strings.Split(masked(printed), "\n"), strings.Split(masked(transcript(t)), "\n")
	for i := range max(len(got), len(want)) {
		if lineAt(got, i) != lineAt(want, i) {
			t.Errorf("line %d:\ngot  %q\nwant %q", i+1, lineAt(got, i), lineAt(want, i))
		}
	}
}

// transcript returns what docs/demo.md shows below the command.
func transcript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/demo.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "\n$ go run ./cmd/agentledger demo --nodes 3 --once\n")
	block, _, closed := strings.Cut(after, "\n```\n")
	if !found || !closed {
		t.Fatal("docs/demo.md has no transcript of the demo")
	}
	return block + "\n"
}

// variable matches what differs between runs: keys, and versions, numbers and times with the spaces before them.
var variable = regexp.MustCompile(`log\.example/o/\S+| *[0-9][0-9.,]*(ms|s\b)?`)

func masked(s string) string { return variable.ReplaceAllString(s, "…") }

func lineAt(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(no line)"
}

// If the user kills a node while the demo serves, the agent continues. The demo then ends without an error.
func TestDemoKeepsServing(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--nodes", "2")
	_, first := d.readUntil(`^ *node 1 +kill -9 ([0-9]+) `)
	d.readUntil("Stop with Ctrl-C")
	d.readUntil("event later-0002 was acknowledged")
	pid, err := strconv.Atoi(first[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, last := d.readUntil("event later-([0-9]+) was")
	for deadline := time.Now().Add(time.Minute); last[1] < "0006"; {
		if _, last = d.readUntil("event later-([0-9]+) was"); time.Now().After(deadline) {
			t.Fatalf("the agent does not continue after event %s", last[1])
		}
	}
	if err := d.command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	d.readUntil("node 1 was killed")
	d.readUntil("[0-9]+ checks passed, 0 failed")
	d.wantGone(0)
}

// An interrupted demo leaves nothing behind.
func TestDemoIsInterrupted(t *testing.T) {
	t.Parallel()
	d := startDemo(t, "--nodes", "3", "--once")
	d.readUntil("node 2 ")
	if err := d.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for d.lines.Scan() {
	}
	d.wantGone(2)
}

func TestNodesAreBounded(t *testing.T) {
	t.Parallel()
	for _, nodes := range []string{"0", "10"} {
		d := startDemo(t, "--nodes", nodes)
		for d.lines.Scan() {
		}
		d.wantGone(2)
		if !strings.Contains(d.errors.String(), "want 2 to 9") {
			t.Errorf("%s nodes: got %q", nodes, d.errors.String())
		}
	}
}
