package nodes_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// A node does not start with settings with which it could not be a node, or would belong to another service.
func TestStartIsRejected(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	first := startProcess(t, server.URL())
	servicetest.At(t, first.main, first.identity).Found("Red", "red", "ann@red.example")
	node := []string{"--node-listen", "127.0.0.1:0", "--node-url", "https://127.0.0.1:1"}
	tests := []struct {
		name  string
		flags []string
		env   string
		want  string
	}{
		{"the embedded store", node, "", "several nodes need one database"},
		{"no URL", append([]string{"--storage", server.URL()}, node[:2]...), "", "must be set together"},
		{"another master key", append([]string{"--storage", server.URL()}, node...),
			"AGENTLEDGER_MASTER_KEY=AQECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "not the one of the nodes that serve from it"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			command := serveCommand(t, test.flags...)
			if test.env != "" {
				command.Env = append(command.Env, test.env)
			}
			out, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(bytes.ToLower(out)), test.want) {
				t.Errorf("got %v and %q, want %q", err, out, test.want)
			}
		})
	}
}

// A node is ready once it has joined the table of nodes and knows who owns the service. While it cannot join, /readyz is
// 503 with the reason.
func TestNodeThatHasNotJoinedIsNotReady(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	first := startProcess(t, server.URL())
	first.terminate()
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	lock, err := conn.Begin(t.Context())
	if err == nil {
		_, err = lock.Exec(t.Context(), "LOCK TABLE node IN SHARE MODE") // reads go on
	}
	if err != nil {
		t.Fatal(err)
	}
	second := startProcess(t, server.URL())
	status, _, body, err := get(t.Context(), second, "/readyz", time.Minute)
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(string(body), "has not joined") {
		t.Errorf("before it has joined: got %d %q, %v", status, body, err)
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var node string
	for status = 0; status != http.StatusOK; {
		if status, node, _, err = get(t.Context(), second, "/readyz", time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Trim(node, "0") == "" {
		t.Errorf("the ready node is %q", node)
	}
}

// serveCommand returns the command that starts a process with its own data folder and ports.
func serveCommand(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	return serveCommandIn(t, t.TempDir(), flags...)
}

func serveCommandIn(t *testing.T, data string, flags ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(servicetest.Program(t), append([]string{"serve", "--data", data, "--listen",
		"127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", "", "--public-url", "http://log.example"},
		flags...)...)
	command.Env = environment()
	return command
}

// startAlone starts a process without node flags and waits until it serves. It ends with the test.
func startAlone(t *testing.T, storage, data string) *exec.Cmd {
	t.Helper()
	command := serveCommandIn(t, data, "--storage", storage)
	command.Stderr = new(bytes.Buffer)
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	servicetest.AwaitServing(t, "alone", out)
	return command
}

// A single process does not start while nodes are running, nor a node while a single process is running. Processes that
// were killed or stopped prevent nothing.
func TestSingleProcessNextToNodes(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	alone := []string{"--storage", server.URL()}
	node := append([]string{"--node-listen", "127.0.0.1:0", "--node-url", "https://127.0.0.1:1"}, alone...)
	refused := func(step, want string, flags []string) {
		t.Helper()
		command := serveCommand(t, flags...)
		out, err := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); err == nil || code != 3 || !strings.Contains(string(out), want) {
			t.Errorf("%s: got status %d and %q, want status 3 and %q", step, code, out, want)
		}
	}
	first := startProcess(t, server.URL())
	refused("beside a node", "nodes serve from it", alone)
	first.kill()

	single := startAlone(t, server.URL(), t.TempDir())
	refused("beside a process that serves alone", "a process without --node-listen", node)
	killAndWait(t, single)
	startProcess(t, server.URL()).terminate()
}

func killAndWait(t *testing.T, command *exec.Cmd) {
	t.Helper()
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
}

// If two single processes start, the second is rejected with the name of the first, and so are commands that write to
// the store. After a crash, another folder of anchors waits until the row is stale; the folder of the crashed process
// starts at once, because it has the lock.
func TestSecondSingleProcess(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	rows := func() (n int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM node").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	data, other := t.TempDir(), t.TempDir()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	refused := func(command *exec.Cmd, holder int) {
		t.Helper()
		command.Env = environment()
		out, err := command.CombinedOutput()
		text := string(out)
		if code := command.ProcessState.ExitCode(); err == nil || code != 3 || !strings.Contains(text, "serves from it") ||
			!strings.Contains(text, fmt.Sprintf("on %s, process %d", host, holder)) {
			t.Errorf("%v: got status %d and %q, want status 3 with the name of the process", command.Args[1:], code, text)
		}
	}
	first := startAlone(t, server.URL(), data)
	for _, args := range [][]string{
		{"compact"}, {"succeed", "--organization", "red", "--reason", "x"}, {"rotate-log-key", "--slug", "red"},
		{"init", "--name", "Red", "--slug", "red", "--admin-email", "ann@red.example", "--public-url", "http://log.example", "--json"},
	} {
		refused(exec.Command(servicetest.Program(t), append(args, "--storage", server.URL(), "--data", other)...), first.Process.Pid)
	}
	refused(serveCommandIn(t, other, "--storage", server.URL()), first.Process.Pid)
	killAndWait(t, first)

	third := startAlone(t, server.URL(), other)
	killAndWait(t, third)
	ctx, stop := context.WithCancel(t.Context())
	beaten := make(chan error, 1)
	go func() { // as if the last process were alive
		for ctx.Err() == nil {
			if _, err := conn.Exec(ctx, "UPDATE node SET beats = beats + 1 WHERE version LIKE $1",
				fmt.Appendf(nil, "%% process %d", third.Process.Pid)); err != nil && ctx.Err() == nil {
				beaten <- err
				return
			}
		}
		beaten <- nil
	}()
	refused(serveCommandIn(t, data, "--storage", server.URL()), third.Process.Pid)
	again := startAlone(t, server.URL(), other)
	stop()
	if err := <-beaten; err != nil {
		t.Fatal(err)
	}
	if err := again.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := again.Wait(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if conn, err = pgx.Connect(t.Context(), server.URL()); err != nil { // the context ended the first process
		t.Fatal(err)
	}
	if n := rows(); n > 1 {
		t.Errorf("%d rows remain after a stop, want at most the killed process's row", n)
	}
}

// A single process ends if it continues after a suspension and another process has taken its place.
func TestSuspendedProcessEndsForAnother(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	first := startAlone(t, server.URL(), t.TempDir())
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	second := startAlone(t, server.URL(), t.TempDir())
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil || first.ProcessState.ExitCode() != 3 {
		t.Errorf("the first: got %v, want status 3", err)
	}
	if log := fmt.Sprint(first.Stderr); !strings.Contains(log, "other processes serve from the database") {
		t.Errorf("the first does not log why it ended: %s", log)
	}
	if err := second.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := second.Wait(); err != nil {
		t.Errorf("the second: got %v, want it to run until it was stopped", err)
	}
}

// A single process ends if nodes have started to serve while it was suspended.
func TestSuspendedProcessEndsForNodes(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	single := startAlone(t, server.URL(), t.TempDir())
	if err := single.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	startProcess(t, server.URL())
	if err := single.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := single.Wait(); err == nil || single.ProcessState.ExitCode() != 3 {
		t.Errorf("got %v, want status 3", err)
	}
}

// A node that accepts requests has prepared appends on its connections. Otherwise the first events of its organizations
// would wait for connections.
func TestStartOpensConnections(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	startProcess(t, server.URL())
	conn, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	const statement = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'agentledger' AND query LIKE '%UPDATE head SET size%'"
	var used int // for preparing an append
	if err := conn.QueryRow(t.Context(), statement).Scan(&used); err != nil {
		t.Fatal(err)
	}
	if want := 4; used != want {
		t.Errorf("got %d connections, want %d", used, want)
	}
}
