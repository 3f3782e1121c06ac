package nodes_test

import (
	"math/rand/v2"
	"time"

	"github.com/agentledger/agentledger/internal/test/faultproxy"
)

// faultKind is one way in which something breaks, and is whole again afterwards.
type faultKind struct {
	name   string
	strike func(d *drill, n *node)
}

// faultKinds are in the order of a short drill: the first ones differ most.
func faultKinds() []faultKind {
	return []faultKind{
		{"a node is killed", (*drill).killNode},
		{"the database fails over", (*drill).failOver},
		{stopped, (*drill).stopNode},
		{"a node is not heard by the others", isolation(severity{speaks: true})},
		{"a node's clock moves forward", clockStep(1)},
		{"a node hears nothing of the database", databaseFault(faultproxy.Fault{HoldAnswers: true})},
		{"a node is added, and taken away", (*drill).addNode},
		{"a node stands still for 5 s", (*drill).pauseNode},
		{"a node hears nothing of the others", isolation(severity{listens: true})},
		{"a node is cut off from the others", isolation(severity{cut: true})},
		{"a node is cut off from the database", databaseFault(faultproxy.Fault{Cut: true})},
		{"the database hears nothing of a node", databaseFault(faultproxy.Fault{HoldCalls: true})},
		{"a node's clock moves back", clockStep(-1)},
		{"a node starts with a clock that is ahead", (*drill).startAhead},
	}
}

// kindOf returns the fault of a round: each kind once, and then any.
func kindOf(round int) faultKind {
	all := faultKinds()
	if round < len(all) {
		return all[round]
	}
	return all[rand.IntN(len(all))]
}

// awhile is a random time, shorter or longer than the others wait for a silent node.
func awhile() time.Duration { return time.Duration(300+rand.IntN(4700)) * time.Millisecond }

func (d *drill) killNode(n *node) {
	n.kill()
	time.Sleep(awhile())
	n.start()
}

func (d *drill) pauseNode(n *node) { n.pause(5 * time.Second) }

func (d *drill) stopNode(n *node) {
	n.terminate()
	n.start()
}

// isolation returns the fault of a node that is cut off from the others for a while.
func isolation(s severity) func(d *drill, n *node) {
	return func(d *drill, n *node) {
		d.isolate(n, s)
		time.Sleep(awhile())
		if rand.IntN(2) == 0 {
			d.resetCalls(n) // the bytes that wait are lost; else they come late
		}
		d.isolate(n, severity{})
	}
}

// databaseFault returns the fault of a node that is cut off from the database for a while.
func databaseFault(f faultproxy.Fault) func(d *drill, n *node) {
	return func(_ *drill, n *node) {
		n.database.Set(0, f)
		time.Sleep(awhile())
		if rand.IntN(2) == 0 {
			n.database.Reset(0)
		}
		n.database.Set(0, faultproxy.Fault{})
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
	return func(_ *drill, n *node) {
		n.clock.move(sign * time.Duration(2+rand.IntN(18)) * time.Minute)
		time.Sleep(awhile())
		n.clock.move(0)
	}
}

// startAhead starts a node on a machine whose clock is not set yet, and again after the operator looked at it.
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
