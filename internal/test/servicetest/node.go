package servicetest

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// MasterKey is that of all nodes.
const MasterKey = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

// Node is one of several nodes on a database, over its restarts. Its addresses stay the same.
type Node struct {
	testing.TB
	Main, Identity string // URLs
	ID             string // of this run

	metrics string // URL
	args    []string
	command *exec.Cmd
	log     *buffer
}

// StartNode starts a node with a folder of its own. flags are before the command, such as --config; more are arguments
// of serve.
func StartNode(t testing.TB, storage string, flags []string, more ...string) *Node {
	t.Helper()
	main, identity, internal, metrics := FreeAddress(t), FreeAddress(t), FreeAddress(t), FreeAddress(t)
	n := &Node{TB: t, Main: "http://" + main, Identity: "http://" + identity, metrics: "http://" + metrics,
		log: new(buffer)}
	n.args = slices.Concat(flags, []string{"serve", "--storage", storage, "--data", t.TempDir(), "--listen", main,
		"--id-listen", identity, "--metrics-listen", metrics, "--public-url", "https://log.example",
		"--node-listen", internal, "--node-url", "https://" + internal}, more)
	t.Cleanup(func() {
		n.End(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the log of node %s:\n%s", n.Main, n.log)
		}
	})
	n.Start()
	return n
}

// Start starts a node that has ended, with more arguments of serve, and returns when it serves.
func (n *Node) Start(more ...string) {
	n.Helper()
	n.args = append(n.args, more...)
	n.command = exec.Command(Program(n), n.args...)
	n.command.Env = append(os.Environ(), "AGENTLEDGER_PLATFORM_SECRET="+Secret, "AGENTLEDGER_MASTER_KEY="+MasterKey)
	n.command.Stderr = n.log
	out, err := n.command.StdoutPipe()
	if err == nil {
		err = n.command.Start()
	}
	if err != nil {
		n.Fatal(err)
	}
	AwaitServing(n, "node "+n.Main, out)
	n.ID = n.OwnerOf("/livez")
}

// End sends a signal that ends the node, and returns how it ended.
func (n *Node) End(s os.Signal) error {
	if n.command == nil || n.command.ProcessState != nil {
		return nil
	}
	_ = n.command.Process.Signal(s) // it may have ended
	return n.command.Wait()
}

// Signal sends a signal that does not end the node.
func (n *Node) Signal(s os.Signal) {
	n.Helper()
	if err := n.command.Process.Signal(s); err != nil {
		n.Fatal(err)
	}
}

// OwnerOf asks this node for a path, and returns the id of the node that answered.
func (n *Node) OwnerOf(path string) string {
	n.Helper()
	answer, err := http.Get(n.Main + path)
	if err != nil {
		n.Fatal(err)
	}
	_ = answer.Body.Close()
	return answer.Header.Get("X-Agentledger-Node")
}

// AwaitShards waits until the node sees so many nodes, and owns organizations of its own.
func (n *Node) AwaitShards(nodes int) {
	n.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		seen, owned := n.sees()
		if seen == nodes && owned > 0 {
			return
		}
		if time.Now().After(end) {
			n.Fatalf("node %s sees %d nodes, and owns %d shards", n.Main, seen, owned)
		}
	}
}

// sees returns how many nodes the node sees, and how many shards it owns.
func (n *Node) sees() (nodes, owned int) {
	n.Helper()
	answer, err := http.Get(n.metrics + "/metrics")
	if err != nil {
		n.Fatal(err)
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "agentledger_nodes %d", &nodes)
		_, _ = fmt.Sscanf(lines.Text(), "agentledger_node_shards %d", &owned)
	}
	return nodes, owned
}

// AwaitStatus waits until the node answers a GET with a status.
func (n *Node) AwaitStatus(path string, want int) {
	n.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get(n.Main + path)
		if err != nil {
			n.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode == want {
			return
		}
		if time.Now().After(end) {
			n.Fatalf("node %s: %s: got %d, want %d", n.Main, path, answer.StatusCode, want)
		}
	}
}
