package nodes_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/agentledger/agentledger/internal/test/nodestest"
)

// faultKind is a way in which something fails and then recovers.
type faultKind struct {
	name   string
	strike func(d *drill, n *node)
	lasts  bool // strike calls it during the fault
	clock  bool // strike moves the clock of a node
}

// faultKinds returns the kinds whose names contain a text, in the order of a short drill: the first ones differ most.
func faultKinds(part string) []faultKind {
	return slices.DeleteFunc([]faultKind{
		{name: "a node is killed", strike: (*drill).killNode},
		{name: "the database fails over", strike: (*drill).failOver},
		{name: stopped, strike: (*drill).stopNode},
		{name: "a node is not heard by the others", strike: isolation(severity{speaks: true}), lasts: true},
		{name: "a node's clock moves forward", strike: clockStep(1), lasts: true, clock: true},
		{name: "a node hears nothing of the database", strike: databaseFault(nodestest.Fault{HoldAnswers: true}), lasts: true},
		{name: "a node is added, and taken away", strike: (*drill).addNode},
		{name: "a node stands still for 5 s", strike: (*drill).pauseNode},
		{name: "a node hears nothing of the others", strike: isolation(severity{listens: true}), lasts: true},
		{name: "a node is cut off from the others", strike: isolation(severity{cut: true}), lasts: true},
		{name: "a node is cut off from the database", strike: databaseFault(nodestest.Fault{Cut: true}), lasts: true},
		{name: "the database hears nothing of a node", strike: databaseFault(nodestest.Fault{HoldCalls: true}), lasts: true},
		{name: "a node's clock moves back", strike: clockStep(-1), lasts: true, clock: true},
		{name: "a node starts with a clock that is ahead", strike: (*drill).startAhead, clock: true},
	}, func(k faultKind) bool { return !strings.Contains(k.name, part) })
}

// meanwhile returns after the duration of a fault.
func (d *drill) meanwhile() {
	time.Sleep(awhile())
	if d.second != nil {
		d.killNode(d.second)
	}
}

// awhile is a random time, shorter or longer than the time that others wait for a silent node.
func awhile() time.Duration { return time.Duration(300+rand.IntN(4700)) * time.Millisecond }

func (d *drill) killNode(n *node) {
	n.kill()
	time.Sleep(awhile())
	n.start()
}

func (d *drill) pauseNode(n *node) { n.pause(5 * time.Second) }

// returnTime is enough for a restarted node to get organizations from the others.
const returnTime = time.Second

func (d *drill) stopNode(n *node) {
	n.terminate()
	n.start()
	time.Sleep(returnTime)
}

// isolation returns the fault of a node that is cut off from the others for a while.
func isolation(s severity) func(d *drill, n *node) {
	return func(d *drill, n *node) {
		d.isolate(n, s)
		d.meanwhile()
		if rand.IntN(2) == 0 {
			d.resetCalls(n) // delayed bytes are lost; otherwise they arrive late
		}
		d.isolate(n, severity{})
	}
}

// databaseFault returns the fault of a node that is cut off from the database for a while.
func databaseFault(f nodestest.Fault) func(d *drill, n *node) {
	return func(d *drill, n *node) {
		n.database.Set(0, f)
		d.meanwhile()
		if rand.IntN(2) == 0 {
			n.database.Reset(0)
		}
		n.database.Set(0, nodestest.Fault{})
	}
}

func (d *drill) failOver(*node) {
	d.database.failOver()
	d.awaitProgress()
	d.database.addStandby()
}

// addNode starts a fourth node and stops it, or kills it.
func (d *drill) addNode(*node) {
	n := d.newNode(d.t)
	n.start()
	d.mu.Lock()
	d.nodes = append(d.nodes, n)
	d.mu.Unlock()
	time.Sleep(awhile())
	if rand.IntN(2) == 0 {
		n.kill()
	} else {
		n.terminate()
	}
	d.mu.Lock()
	d.nodes = d.nodes[:len(d.nodes)-1]
	d.mu.Unlock()
}

// clockStep returns the fault of a clock that is wrong by minutes for a while.
func clockStep(sign time.Duration) func(d *drill, n *node) {
	return func(d *drill, n *node) {
		n.clock.move(sign * time.Duration(2+rand.IntN(18)) * time.Minute)
		d.meanwhile()
		n.clock.move(0)
	}
}

// startAhead starts a node on a machine whose clock is not set yet, and again after the operator has checked it.
func (d *drill) startAhead(n *node) {
	n.kill()
	n.clock.move(time.Duration(2+rand.IntN(18)) * time.Minute)
	n.start()
	time.Sleep(awhile())
	n.terminate()
	n.clock.move(0)
	usual := n.more
	n.more = append(n.more[:len(n.more):len(n.more)], "--accept-clock")
	n.start()
	n.more = usual
}
