package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// node is one process of the service, over its restarts. Its addresses stay the same.
type node struct {
	name           string // node 1
	storage, dir   string
	main, identity string // URLs
	metrics        string // URL
	internal       string // address
	secrets        []string
	id             string   // of this run; "" before it
	process        *process // nil before the first start
	log            tail
}

// nodeHeader names the header of each answer that holds the id of the node that answered.
const nodeHeader = "X-Agentledger-Node"

// publicURL is the address of the service, which no name server knows.
const publicURL = "http://log.example"

// newNode returns a node that does not run. number counts from 1.
func newNode(number int, storage, dir string, secrets []string) (*node, error) {
	n := &node{name: fmt.Sprintf("node %d", number), storage: storage, secrets: secrets,
		dir: filepath.Join(dir, fmt.Sprintf("node-%d", number))}
	addresses := make([]string, 4)
	for i := range addresses {
		l, err := listenSomewhere()
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses[i] = l.Addr().String()
	}
	n.main, n.identity, n.metrics = "http://"+addresses[0], "http://"+addresses[1], "http://"+addresses[2]
	n.internal = addresses[3]
	return n, nil
}

// listenSomewhere returns a listener on a port below those that systems give to connections. So the port stays free
// while a node is started again.
func listenSomewhere() (l net.Listener, err error) {
	for range 1000 {
		port := 15_000 + rand.IntN(15_000)
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("find free ports: %w", err)
}

func addressOf(url string) string { return strings.TrimPrefix(url, "http://") }

// storeFlags name the database and the folder of the node, which has its anchors.
func (n *node) storeFlags() []string { return []string{"--storage", n.storage, "--data", n.dir} }

// command returns a run of this program with the secrets of the service.
func (n *node) command(args ...string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.Command(program, args...)
	c.Env = environment(n.secrets...)
	c.SysProcAttr = attributes(syscall.SIGKILL)
	return c, nil
}

// startTime bounds the start of a node.
const startTime = time.Minute

// start starts the process and returns when it serves.
func (n *node) start(ctx context.Context) error {
	args := append([]string{"serve"}, n.storeFlags()...)
	c, err := n.command(append(args, "--listen", addressOf(n.main), "--id-listen", addressOf(n.identity),
		"--metrics-listen", addressOf(n.metrics), "--public-url", publicURL, "--log-level", "warn",
		"--node-listen", n.internal, "--node-url", "https://"+n.internal)...)
	if err != nil {
		return err
	}
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer in.Close()
	c.Stdout, c.Stderr = in, &n.log
	if n.process, err = startProcess(c); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", n.name, err), out.Close())
	}
	serves := make(chan bool, 1)
	go func() {
		defer out.Close()
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "serving ") {
		}
		serves <- strings.HasPrefix(lines.Text(), "serving ")
		_, _ = io.Copy(io.Discard, out) // to the end of the process
	}()
	select {
	case ok := <-serves:
		if !ok {
			return fmt.Errorf("start %s: it ended", n.name)
		}
	case <-time.After(startTime):
		return fmt.Errorf("start %s: it does not serve", n.name)
	case <-ctx.Done():
		return ctx.Err()
	}
	n.id, err = n.askID(ctx)
	return err
}

// askID returns the id of this run.
func (n *node) askID(ctx context.Context) (string, error) {
	answer, err := fetch(ctx, n.main+"/livez")
	if err != nil {
		return "", err
	}
	return answer.Header.Get(nodeHeader), answer.Body.Close()
}

// fetch makes a GET request. The caller closes the body.
func fetch(ctx context.Context, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}

// view reads from the metrics how many nodes this one sees, and how many shards it owns.
func (n *node) view(ctx context.Context) (nodes, shards int, err error) {
	answer, err := fetch(ctx, n.metrics+"/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		_, _ = fmt.Sscanf(lines.Text(), "agentledger_nodes %d", &nodes)
		_, _ = fmt.Sscanf(lines.Text(), "agentledger_node_shards %d", &shards)
	}
	return nodes, shards, nil
}

// runs reports whether the process was started and has not ended.
func (n *node) runs() bool { return n.process != nil && n.process.runs() }

// kill ends the process at once.
func (n *node) kill() {
	if n.runs() {
		_ = n.process.signal(syscall.SIGKILL)
	}
}

// terminate stops the process as an operator does.
func (n *node) terminate() error { return n.process.signal(syscall.SIGTERM) }

// fsck re-verifies the database beside the anchors of this node, and returns the last line of the output.
func (n *node) fsck() (said string, err error) {
	c, err := n.command(append([]string{"fsck"}, n.storeFlags()...)...)
	if err != nil {
		return "", err
	}
	c.Stderr = &n.log
	out, err := c.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1], err
}
