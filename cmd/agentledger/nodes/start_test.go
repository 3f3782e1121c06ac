package nodes_test

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/agentledger/agentledger/internal/test/servicetest"
	"github.com/agentledger/agentledger/storage/pgstore/pgtest"
)

// A node is not started with settings by which it could not be one, or would be one of another service.
func TestStartIsRefused(t *testing.T) {
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
		{"no URL", append([]string{"--storage", server.URL()}, node[:2]...), "", "belong together"},
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

// serveCommand returns the command that starts a process with a data folder and ports of its own.
func serveCommand(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(servicetest.Program(t), append([]string{"serve", "--data", t.TempDir(), "--listen",
		"127.0.0.1:0", "--id-listen", "127.0.0.1:0", "--metrics-listen", "", "--public-url", "http://log.example"},
		flags...)...)
	command.Env = environment()
	return command
}

// startAlone starts a process without node flags and waits until it serves. It ends with the test.
func startAlone(t *testing.T, storage string) *exec.Cmd {
	t.Helper()
	command := serveCommand(t, "--storage", storage)
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

// A process that serves alone is refused beside nodes that live, and a node beside such a process. One that was killed
// or stopped is in nobody's way.
func TestAloneBesideNodes(t *testing.T) {
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

	single := startAlone(t, server.URL())
	refused("beside a process that serves alone", "a process without --node-listen", node)
	if err := single.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = single.Wait() // it was killed
	startProcess(t, server.URL()).terminate()
}

// A process that serves alone ends when it finds that nodes have begun to serve while it stood still.
func TestAloneEndsBesideNodes(t *testing.T) {
	server, err := pgtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	single := startAlone(t, server.URL())
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

// A node that takes requests has used its connections for appends. Otherwise the first events of its organizations would
// wait until they are open.
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
	var used int // for an append before
	if err := conn.QueryRow(t.Context(), statement).Scan(&used); err != nil {
		t.Fatal(err)
	}
	if want := 4; used != want {
		t.Errorf("got %d connections, want %d", used, want)
	}
}
