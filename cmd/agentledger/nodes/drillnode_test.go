package nodes_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/agentledger/agentledger/internal/test/nodestest"
)

// node is one node of the drill, with proxies in front of the database and its internal listener.
type node struct {
	*process
	number   int // identifies the node in the links of proxies, from 1
	database *nodestest.Proxy
	calls    *nodestest.Proxy // from the other nodes
	clock    wallClock
}

// newNode returns a node that is not running yet.
func (d *drill) newNode(t *testing.T) *node {
	t.Helper()
	n := &node{clock: newWallClock(t)}
	n.database = nodestest.NewProxy(t, nodestest.ProxyOptions{Dial: d.database.dial})
	n.process = newProcess(t, "postgres://postgres@"+n.database.Address()+"/postgres?sslmode=disable", d.program)
	n.calls = nodestest.NewProxy(t, nodestest.ProxyOptions{Caller: d.callerOf,
		Dial: func() (net.Conn, error) { return net.Dial("tcp", n.node) }})
	n.url = "https://" + n.calls.Address()
	n.variables = []string{clockVariable + "=" + n.clock.path}
	n.more = []string{"--callout-allow", "127.0.0.0/8"}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.everyNode = append(d.everyNode, n)
	n.number = len(d.everyNode)
	return n
}

// callerOf returns the number of the node that opened a connection, or 0 if the system does not report it.
func (d *drill) callerOf(c net.Conn) int {
	d.mu.Lock()
	numbers, pids := map[int]int{}, []int{}
	for _, n := range d.everyNode {
		if pid := n.pid(); pid != 0 {
			numbers[pid], pids = n.number, append(pids, pid)
		}
	}
	d.mu.Unlock()
	return numbers[nodestest.CallerOf(c, pids)]
}

// running returns the nodes that requests are sent to.
func (d *drill) running() []*node {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]*node(nil), d.nodes...)
}

// severity is the part of the traffic with other nodes that a node loses.
type severity struct {
	cut             bool // everything, at once
	speaks, listens bool // it is not heard by the others, or hears nothing from them
}

// isolate breaks the links between a node and the others. The zero severity restores them. A node is cut off in one
// direction by holding its calls, and its responses to the calls of the others.
func (d *drill) isolate(n *node, s severity) {
	for _, other := range d.running() {
		if other == n {
			continue
		}
		other.setCaller(n, nodestest.Fault{Cut: s.cut, HoldCalls: s.speaks, HoldAnswers: s.listens})
		n.setCaller(other, nodestest.Fault{Cut: s.cut, HoldCalls: s.listens, HoldAnswers: s.speaks})
	}
}

// setCaller breaks the link of a caller to this node, or the link of all callers if the system does not report them.
func (n *node) setCaller(caller *node, f nodestest.Fault) {
	n.calls.Set(caller.number, f)
	if runtime.GOOS != "linux" {
		n.calls.Set(0, f)
	}
}

// resetCalls closes the connections between a node and the others.
func (d *drill) resetCalls(n *node) {
	for _, other := range d.running() {
		for _, number := range []int{0, other.number} {
			n.calls.Reset(number)
		}
		for _, number := range []int{0, n.number} {
			other.calls.Reset(number)
		}
	}
}
