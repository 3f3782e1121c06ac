package console

import (
	"fmt"
	"github.com/agentledger/agentledger/id"
	"github.com/agentledger/agentledger/internal/wire"
	"time"
)

// step is an event of a trace with the address of its page.
type step struct {
	wire.Step
	URL string
}

// node is an event in the tree of a trace.
type node struct {
	step
	Children []*node // on the page
	After    string  // time since the first event of the page, in words
	Deeper   bool    // the parent is further up than the list shows, because nesting ends at maxDepth
	Loop     bool    // the event is its own ancestor
	Dot      string  // position of its time in the chart, in percent from the left, between margins of 2
	Bar      string  // how long its descendants took, in percent

	begin, end time.Time
	parent     *node // used to compute end
	holder     *node // the node whose list contains it
	depth      int
}

// maxDepth is the maximum nesting of lists. Deeper events are in the deepest list, because agents choose the parents,
// and neither browsers nor readers cope with deeper nesting.
const maxDepth = 12

// growTree builds the tree of a page of a trace. An event whose parent is not on the page is a root. So is the first
// event of a loop of parents. Siblings are in log order.
func growTree(steps []step) (roots []*node) {
	nodes, children := make([]*node, len(steps)), make(map[id.Event][]*node)
	byName := make(map[id.Event]*node, len(steps))
	for i := range steps {
		nodes[i] = &node{step: steps[i], depth: -1}
		nodes[i].begin = steps[i].ReceivedAt.Time()
		nodes[i].end = nodes[i].begin
		byName[steps[i].ID] = nodes[i]
	}
	var tops []*node
	for _, n := range nodes {
		if byName[id.Event(n.Parent)] == nil {
			tops = append(tops, n)
		} else {
			children[id.Event(n.Parent)] = append(children[id.Event(n.Parent)], n)
		}
	}
	g := &grower{children: children}
	for _, n := range tops {
		g.growFrom(n)
	}
	for _, n := range nodes { // loops and their descendants
		if n.depth < 0 {
			n.Loop = true
			tops = append(tops, n)
			g.growFrom(n)
		}
	}
	g.measure()
	return tops
}

// grower places nodes, each once.
type grower struct {
	children map[id.Event][]*node
	placed   []*node // parents before their children
}

// growFrom places a root and its descendants that are not placed yet. It does not recurse, because agents can make
// chains of parents arbitrarily long.
func (g *grower) growFrom(root *node) {
	root.depth = 0
	for rest := []*node{root}; len(rest) > 0; {
		n := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		g.placed = append(g.placed, n)
		list := g.children[n.ID]
		for i := len(list) - 1; i >= 0; i-- {
			if child := list[i]; child.depth < 0 {
				child.depth, child.parent, child.holder = n.depth+1, n, n
				if n.depth >= maxDepth {
					child.Deeper, child.holder = true, n.holder
				}
				rest = append(rest, child)
			}
		}
	}
}

// measure adds nodes to the lists of their parents and computes their bars.
func (g *grower) measure() {
	if len(g.placed) == 0 {
		return
	}
	first, last := g.placed[0].begin, g.placed[0].end
	for i := len(g.placed) - 1; i >= 0; i-- {
		n := g.placed[i]
		if n.parent != nil && n.end.After(n.parent.end) {
			n.parent.end = n.end
		}
		if n.begin.Before(first) {
			first = n.begin
		}
		if n.end.After(last) {
			last = n.end
		}
	}
	whole := max(last.Sub(first), time.Millisecond)
	for _, n := range g.placed {
		n.After = fmt.Sprintf("+%.3f s", n.begin.Sub(first).Seconds())
		n.Dot = percent(2 + 96*n.begin.Sub(first).Seconds()/whole.Seconds())
		n.Bar = percent(96 * n.end.Sub(n.begin).Seconds() / whole.Seconds())
		if n.holder != nil {
			n.holder.Children = append(n.holder.Children, n)
		}
	}
}

func percent(value float64) string { return fmt.Sprintf("%.2f%%", value) }
