package demo

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// node is a process of the service, over its restarts. Its addresses do not change.
type node struct {
	name                    string   // node 1
	main, identity, metrics string   // URLs
	store, serve            []string // flags
	*process                         // nil before the first start
}

// publicURL is the address of a service of several nodes. No name server knows it.
const publicURL = "http://log.example"

// addNode adds a node that is not yet running.
func (s *stage) addNode() *node {
	a := freeAddresses(4)
	n := &node{name: fmt.Sprintf("node %d", len(s.nodes)+1), identity: "http://" + a[1], metrics: "http://" + a[2]}
	n.store = []string{"--data", filepath.Join(s.dir, n.name)}
	if s.database != nil {
		n.store = append(n.store, "--storage", s.database.url())
		n.serve = []string{"--public-url", publicURL, "--node-listen", a[3], "--node-url", "https://" + a[3]}
	} else {
		host, port, err := net.SplitHostPort(s.Listen)
		try(err)
		if port == "0" {
			_, port, _ = net.SplitHostPort(a[0])
		}
		a[0] = net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)
		// Browsers have passkeys on localhost without TLS.
		n.serve = []string{"--public-url", "http://localhost:" + port, "--environment", "demo"}
	}
	n.main = "http://" + a[0]
	n.serve = append(n.serve, "--listen", a[0], "--id-listen", a[1], "--metrics-listen", a[2], "--log-level", s.LogLevel,
		"--log-format", s.LogFormat)
	s.nodes = append(s.nodes, n)
	return n
}

// freeAddresses returns addresses on ports below those that systems give to connections, so that they stay free while a
// node is restarted.
func freeAddresses(count int) (all []string) {
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000)))
		if err != nil {
			continue
		}
		defer l.Close()
		if all = append(all, l.Addr().String()); len(all) == count {
			return all
		}
	}
	try(errors.New("find free ports: all are in use"))
	return nil
}

// command returns a command of this program with the secrets of the service.
func (s *stage) command(args ...string) *exec.Cmd {
	c := exec.Command(must(os.Executable()), args...)
	c.Env, c.SysProcAttr = environment(s.secrets...), attributes(syscall.SIGKILL)
	return c
}

// start starts a node and returns when it serves.
func (s *stage) start(ctx context.Context, n *node) {
	log := s.openLog(n.name)
	defer log.Close()
	c := s.command(append(append([]string{"serve"}, n.store...), n.serve...)...)
	c.Stdout, c.Stderr = log, log
	n.process = must(startProcess(c))
	serves := await(ctx, func() bool {
		answer, err := get(ctx, n.main+"/livez")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err == nil || !n.runs()
	})
	if !serves || !n.runs() {
		try(errors.Join(fmt.Errorf("start %s: it does not serve", n.name), ctx.Err()))
	}
}

// answering makes a GET request to a node and returns the ID of the node that answered.
func (n *node) answering(ctx context.Context, path string) string {
	answer := must(get(ctx, n.main+path))
	_ = answer.Body.Close()
	return answer.Header.Get("X-Agentledger-Node")
}

// get makes a GET request. The caller closes the body.
func get(ctx context.Context, url string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(r)
}

// view reads from the metrics how many nodes this node sees, and how many shards it owns.
func (n *node) view(ctx context.Context) (nodes, shards int, err error) {
	answer, err := get(ctx, n.metrics+"/metrics")
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

// kill ends the process at once.
func (n *node) kill() {
	if n.runs() {
		_ = n.end(syscall.SIGKILL)
	}
}

// fsck checks that the stored ledgers match the anchors of a node that has stopped.
func (s *stage) fsck(n *node, name string) {
	c := s.command(append([]string{"fsck"}, n.store...)...)
	out, err := c.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	s.check(err == nil, "%sfsck: %s%s", name, lines[len(lines)-1], because(err))
}
