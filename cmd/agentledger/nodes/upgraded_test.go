package nodes_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentledger/agentledger/internal/test/servicetest"
)

// upgraded is a node whose program changes. Its addresses and its folder do not change.
type upgraded struct {
	t                    *testing.T
	storage, data        string
	main, identity, node string
	release              release

	mu      sync.Mutex
	command *exec.Cmd
	ended   chan error
	text    bytes.Buffer
}

func newUpgraded(t *testing.T, storage string, r release) *upgraded {
	t.Helper()
	n := &upgraded{t: t, storage: storage, data: t.TempDir(), main: "http://" + servicetest.FreeAddress(t),
		identity: "http://" + servicetest.FreeAddress(t), node: servicetest.FreeAddress(t)}
	t.Cleanup(func() {
		n.signal(syscall.SIGCONT)
		n.signal(syscall.SIGKILL)
		<-n.ended
		if t.Failed() {
			t.Logf("the log of node %s:\n%s", n.main, n.log())
		}
	})
	n.start(r)
	return n
}

func (n *upgraded) url() string { return "https://" + n.node }

// Write collects the log of the node.
func (n *upgraded) Write(b []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(b)
}

func (n *upgraded) log() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// prepare returns a command of the node's program.
func (n *upgraded) prepare(args ...string) *exec.Cmd {
	args = append(args, "--storage", n.storage, "--data", n.data)
	if args[0] == "serve" {
		args = append(args, "--listen", strings.TrimPrefix(n.main, "http://"), "--metrics-listen", "", "--public-url",
			"http://log.example", "--id-listen", strings.TrimPrefix(n.identity, "http://"), "--node-listen", n.node,
			"--node-url", n.url())
	}
	command := exec.Command(n.release.program, args...)
	command.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+servicetest.Secret,
		"AGENTLEDGER_MASTER_KEY="+masterKey, "NEXT_STEPS_OF_TESTS="+n.release.steps)
	return command
}

// run runs a command to its end.
func (n *upgraded) run(args ...string) (out string, status int) {
	command := n.prepare(args...)
	all, err := command.CombinedOutput()
	return string(all), statusOf(err)
}

func statusOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// start starts a program and waits until it serves.
func (n *upgraded) start(r release) {
	n.t.Helper()
	n.release = r
	command := n.prepare("serve")
	command.Stderr = n
	out, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }() // nothing of its output is needed once it has ended
	n.mu.Lock()
	n.command, n.ended = command, ended
	n.mu.Unlock()
	servicetest.AwaitServing(n.t, "node "+n.main, out)
}

func (n *upgraded) signal(s os.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.command.Process.Signal(s) // it may have ended
}

// stop stops the node as an operator does.
func (n *upgraded) stop() {
	n.t.Helper()
	n.signal(syscall.SIGTERM)
	if err := n.awaitEnd(); err != nil {
		n.t.Errorf("node %s: stop: %v", n.main, err)
	}
}

func (n *upgraded) awaitEnd() error {
	n.t.Helper()
	select {
	case err := <-n.ended:
		close(n.ended)
		return err
	case <-time.After(time.Minute):
		n.t.Fatalf("node %s did not end", n.main)
	}
	return nil
}

func (n *upgraded) restart(r release) {
	n.t.Helper()
	n.stop()
	n.start(r)
}

// wantRefused starts a program that must exit because the database does not accept it.
func (n *upgraded) wantRefused(r release, words ...string) {
	n.t.Helper()
	n.release = r
	out, status := n.run("serve")
	for _, w := range words {
		if status != refusedStatus || !strings.Contains(out, w) {
			n.t.Errorf("got status %d and %s, want %d and %q", status, out, refusedStatus, w)
		}
	}
}

// wantEnd waits until the node exits with the status of a rejection.
func (n *upgraded) wantEnd(words string) {
	n.t.Helper()
	if err := n.awaitEnd(); statusOf(err) != refusedStatus || !strings.Contains(n.log(), words) {
		n.t.Errorf("got %v, want status %d and %q in its log", err, refusedStatus, words)
	}
}
